//! Validation errors of request bodies, each with its location.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of validation errors in one response.
pub const MAX_REPORTED_ERRORS: usize = 20;

/// Maximum length of a caller's unknown field or parameter in an error, in characters: longer names are truncated.
pub const MAX_REPORTED_NAME_CHARS: usize = 100;

/// Maximum length of ids and names, in characters (Unicode scalar values).
pub const MAX_NAME_CHARS: usize = 1_024;

/// The text, or its first `max_chars` characters and `…`.
#[must_use]
pub fn shortened(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// One validation error of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Location: a JSON Pointer (RFC 6901) into the request body, or the name of a query parameter.
    #[schema(example = "/messages/3/author/external_id")]
    pub pointer: String,
    /// What is wrong and what is expected.
    #[schema(example = "must not be empty")]
    pub detail: String,
}

/// A refused request body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// Not JSON; the text has the position and the cause.
    Malformed(String),
    /// JSON that breaks a rule: at least one and at most [`MAX_REPORTED_ERRORS`] errors.
    Invalid(Vec<FieldError>),
}

/// One line for a terminal: every error with its location.
impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(detail) => formatter.write_str(detail),
            Self::Invalid(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(formatter, "{separator}{} {}", error.pointer, error.detail)?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_text_has_whole_characters_and_an_ellipsis() {
        assert_eq!(shortened("日本語", 3), "日本語");
        assert_eq!(shortened("日本語", 2), "日本…");
    }
}
