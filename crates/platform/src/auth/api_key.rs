//! API keys: `asy_` + 32 random bytes in base62 + a checksum of six characters, so that scanners find leaked keys
//! without false alarms. Only the SHA-256 of a key is ever stored; with 256 random bits no slower hash is needed.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::runtime::{RandomnessUnavailable, random_bytes};

const PREFIX: &str = "asy_";
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Digits that 32 bytes need in base 62, and that 4 bytes need.
const SECRET_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;
/// Lengths accepted: a key given at start may be any text of 16 characters or more.
const MIN_LENGTH: usize = 16;
const MAX_LENGTH: usize = 1_024;

/// An API key as its owner holds it.
#[derive(Clone)]
pub struct ApiKey(SecretString);

/// A text that cannot be an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an API key has 16 to 1024 characters, none of them a control character")]
pub struct InvalidApiKey;

/// SHA-256 of an API key: what is stored and looked up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ApiKeyHash([u8; 32]);

impl ApiKey {
    /// A new random key.
    ///
    /// # Errors
    /// When the operating system has no randomness.
    pub fn generate() -> Result<Self, RandomnessUnavailable> {
        let secret = base62(&random_bytes::<32>()?, SECRET_DIGITS);
        let checksum = base62(&crc32fast::hash(secret.as_bytes()).to_be_bytes(), CHECKSUM_DIGITS);
        Ok(Self(format!("{PREFIX}{secret}{checksum}").into()))
    }

    /// A key that somebody sent.
    ///
    /// # Errors
    /// When the text cannot be a key whatever is stored.
    pub fn parse(text: &str) -> Result<Self, InvalidApiKey> {
        let length = text.chars().count();
        let is_whole = text.trim() == text && !text.chars().any(char::is_control);
        if is_whole && (MIN_LENGTH..=MAX_LENGTH).contains(&length) {
            Ok(Self(text.to_owned().into()))
        } else {
            Err(InvalidApiKey)
        }
    }

    /// The key itself, to be shown once.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// What is stored of it.
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash(Sha256::digest(self.reveal().as_bytes()).into())
    }
}

impl ApiKeyHash {
    /// The 32 bytes, for storage.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// From lower-case hexadecimal, as services exchange it.
    pub fn from_hex(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 64 {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(bytes.chunks_exact(2)) {
            let digit = |digit: u8| (digit as char).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(hash))
    }
}

/// Lower-case hexadecimal.
impl fmt::Display for ApiKeyHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// A big-endian number in base 62, padded to `digits` digits.
fn base62(bytes: &[u8], digits: usize) -> String {
    let mut number = bytes.to_vec();
    let mut text = vec![b'0'; digits];
    for digit in text.iter_mut().rev() {
        let mut remainder = 0_u32;
        for byte in &mut number {
            let value = remainder * 256 + u32::from(*byte);
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            remainder = value % 62;
        }
        *digit = ALPHABET[remainder as usize];
    }
    text.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_has_the_documented_shape_and_is_never_repeated() {
        let key = ApiKey::generate().unwrap();
        assert_eq!(key.reveal().len(), PREFIX.len() + SECRET_DIGITS + CHECKSUM_DIGITS);
        assert!(key.reveal().starts_with("asy_"));
        assert!(key.reveal()[4..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(key.reveal(), ApiKey::generate().unwrap().reveal());
    }

    #[test]
    fn base62_writes_big_endian_numbers() {
        assert_eq!(base62(&[0, 0, 0, 61], 6), "00000z");
        assert_eq!(base62(&[0, 0, 0, 62], 6), "000010");
        assert_eq!(base62(&u32::MAX.to_be_bytes(), 6), "4gfFC3");
    }

    #[test]
    fn a_hash_survives_its_hexadecimal_form() {
        let hash = ApiKey::parse("0123456789abcdef").unwrap().hash();
        assert!(ApiKeyHash::from_hex(&hash.to_string()) == Some(hash));
        assert!(ApiKeyHash::from_hex("abc").is_none());
    }

    #[test]
    fn a_text_that_cannot_be_a_key_is_refused() {
        for text in ["", "short", " 0123456789abcdef", "0123456789abcde\n", "0123456789\0abcdef"] {
            assert!(ApiKey::parse(text).is_err(), "{text:?}");
        }
        assert!(ApiKey::parse(&"x".repeat(1_025)).is_err());
        assert!(ApiKey::parse("a passphrase, wörter").is_ok());
    }
}
