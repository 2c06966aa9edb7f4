//! Names of organizations and keys.

use std::fmt;

/// A name must fit into an index entry and on a line.
const MAX_CHARS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name has 1 to 200 characters, no control characters, and no spaces at its ends")]
pub struct InvalidName;

macro_rules! names {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub struct $name(String);

        impl $name {
            /// # Errors
            /// When it is empty, too long, or has control characters or spaces at its ends.
            pub fn parse(text: &str) -> Result<Self, InvalidName> {
                check(text).map(|text| Self(text.to_owned()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )+};
}

names! {
    /// The name of an organization, unique in an installation.
    OrganizationName;
    /// The purpose of a key, given by its creator.
    KeyName;
}

impl KeyName {
    /// The name of the bootstrap key.
    pub fn bootstrap() -> Self {
        Self("bootstrap".to_owned())
    }
}

fn check(text: &str) -> Result<&str, InvalidName> {
    let is_valid = !text.is_empty()
        && text.trim() == text
        && text.chars().count() <= MAX_CHARS
        && !text.chars().any(char::is_control);
    if is_valid { Ok(text) } else { Err(InvalidName) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_is_short_and_printable() {
        for text in ["default", "Müller & Söhne", &"ü".repeat(200)] {
            assert!(OrganizationName::parse(text).is_ok(), "{text}");
        }
        for text in ["", " ", " a", "a ", "a\nb", "a\0b", &"x".repeat(201)] {
            assert_eq!(OrganizationName::parse(text), Err(InvalidName), "{text:?}");
            assert_eq!(KeyName::parse(text), Err(InvalidName), "{text:?}");
        }
    }
}
