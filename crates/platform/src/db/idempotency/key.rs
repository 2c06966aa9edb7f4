//! The client's idempotency key, and the fingerprint of the body sent with it.

use std::fmt;

use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::validation::FieldError;
use sha2::{Digest, Sha256};

use super::HEADER;

const MAX_LENGTH: usize = 255;

/// The value of an `Idempotency-Key` header: 1 to 255 characters of visible ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(String);

/// The header value is not a valid key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must have 1 to 255 characters of visible ASCII, and be given once")]
pub struct InvalidIdempotencyKey;

/// SHA-256 of a request body: distinguishes a repeated request from another one with the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl IdempotencyKey {
    /// Checks a header value.
    ///
    /// # Errors
    /// When it is empty, longer than 255 bytes, or holds anything but visible ASCII.
    pub fn parse(value: &[u8]) -> Result<Self, InvalidIdempotencyKey> {
        if value.is_empty() || value.len() > MAX_LENGTH || !value.iter().all(u8::is_ascii_graphic) {
            return Err(InvalidIdempotencyKey);
        }
        Ok(Self(value.iter().copied().map(char::from).collect()))
    }

    /// Key of a request; `values` are the values of all headers of that name.
    ///
    /// # Errors
    /// When the header is repeated or its value is invalid.
    pub fn from_headers<'v>(
        values: impl IntoIterator<Item = &'v [u8]>,
    ) -> Result<Option<Self>, InvalidIdempotencyKey> {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => Self::parse(value).map(Some),
            (Some(_), Some(_)) => Err(InvalidIdempotencyKey),
        }
    }

    /// The key as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// 400, naming the header.
impl From<InvalidIdempotencyKey> for Problem {
    fn from(error: InvalidIdempotencyKey) -> Self {
        let field_error = FieldError { pointer: HEADER.to_owned(), detail: error.to_string() };
        Self::new(ProblemCode::InvalidRequest, format!("the header {HEADER} {error}"))
            .with_errors(vec![field_error])
    }
}

impl Fingerprint {
    /// The fingerprint of a request body, byte for byte.
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }

    pub(super) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Fingerprint({})", hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_1_to_255_visible_ascii_characters_in_one_header() {
        let longest = vec![b'k'; 255];
        for value in [b"k".as_slice(), b"a-b_c:{}~!", &longest] {
            assert!(IdempotencyKey::parse(value).is_ok(), "{value:?}");
        }
        let too_long = vec![b'k'; 256];
        for value in [b"".as_slice(), b"a b", b"tab\t", b"\xc3\xa4", &too_long] {
            assert_eq!(IdempotencyKey::parse(value), Err(InvalidIdempotencyKey), "{value:?}");
        }
        assert_eq!(IdempotencyKey::from_headers([]), Ok(None));
        assert!(IdempotencyKey::from_headers([b"a".as_slice(), b"a"]).is_err());
    }

    #[test]
    fn fingerprint_distinguishes_bodies_byte_for_byte() {
        assert_eq!(Fingerprint::of(b"{}"), Fingerprint::of(b"{}"));
        assert_ne!(Fingerprint::of(b"{}"), Fingerprint::of(b"{ }"));
    }

    #[test]
    fn invalid_key_is_a_400_that_names_the_header() {
        let problem = Problem::from(InvalidIdempotencyKey);
        assert_eq!(problem.status, 400);
        assert_eq!(problem.errors[0].pointer, "Idempotency-Key");
    }
}
