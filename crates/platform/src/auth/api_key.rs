//! API keys: `asy_` + 32 random bytes in base62 + a checksum of six characters, which lets secret scanners find leaked keys
//! without false positives. Only the SHA-256 of a key is ever stored; with 256 random bits no slower hash is needed.

use secrecy::{ExposeSecret, SecretString};

use super::secret_hash::secret_hash;
use crate::runtime::{RandomnessUnavailable, random_bytes};

const PREFIX: &str = "asy_";
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Base-62 digits of the 32 random bytes, and of the checksum of 4 bytes.
const SECRET_DIGITS: usize = 43;
const CHECKSUM_DIGITS: usize = 6;
/// Accepted lengths, in characters. A bootstrap key may be a text that an operator chose: the minimum makes it hard to guess
/// from its hash.
const MIN_LENGTH: usize = 32;
const MAX_LENGTH: usize = 1_024;

/// An API key in plain text.
#[derive(Clone)]
pub struct ApiKey(SecretString);

/// The text is not a valid API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an API key has 32 to 1024 characters, no control characters, and no white space at its beginning or end"
)]
pub struct InvalidApiKey;

/// The text cannot be the bootstrap key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBootstrapKey {
    /// [`InvalidApiKey`].
    #[error(transparent)]
    Invalid(#[from] InvalidApiKey),
    /// See [`ApiKey::is_mistyped`].
    #[error(
        "a key that begins with asy_ must be one of `assay keys create`: the checksum at its end is wrong. Copy it again, or \
         choose a text with another beginning"
    )]
    Mistyped,
}

secret_hash! {
    /// SHA-256 of an API key, used for storage and lookup.
    ApiKeyHash
}

impl ApiKey {
    /// A new random key.
    ///
    /// # Errors
    /// When the operating system's random generator fails.
    pub fn generate() -> Result<Self, RandomnessUnavailable> {
        let secret = base62(&random_bytes::<32>()?, SECRET_DIGITS);
        let checksum = checksum_of(&secret);
        Ok(Self(format!("{PREFIX}{secret}{checksum}").into()))
    }

    /// Checks a key from a request or the configuration.
    ///
    /// # Errors
    /// When its length is out of range, or it has control characters or surrounding white space.
    pub fn parse(text: &str) -> Result<Self, InvalidApiKey> {
        let length = text.chars().count();
        let is_clean = text.trim() == text && !text.chars().any(char::is_control);
        if is_clean && (MIN_LENGTH..=MAX_LENGTH).contains(&length) {
            Ok(Self(text.to_owned().into()))
        } else {
            Err(InvalidApiKey)
        }
    }

    /// [`Self::parse`] for the bootstrap key, which an operator chooses. It may have any form but that of a mistyped key, which is
    /// refused in requests.
    ///
    /// # Errors
    /// [`InvalidBootstrapKey`].
    pub fn parse_bootstrap(text: &str) -> Result<Self, InvalidBootstrapKey> {
        let key = Self::parse(text)?;
        if key.is_mistyped() { Err(InvalidBootstrapKey::Mistyped) } else { Ok(key) }
    }

    /// Whether the key begins like generated ones but was not generated: its length or its checksum is wrong. No such key is stored
    /// anywhere, so it need not be looked up.
    pub fn is_mistyped(&self) -> bool {
        self.reveal().starts_with(PREFIX) && !self.is_generated()
    }

    /// Whether the key has the form of generated ones, with the right checksum: then its 256 random bits cannot be guessed.
    pub fn is_generated(&self) -> bool {
        let digits = self.reveal().strip_prefix(PREFIX);
        let parts = digits.and_then(|digits| digits.split_at_checked(SECRET_DIGITS));
        parts.is_some_and(|(secret, checksum)| checksum_of(secret) == checksum)
    }

    /// The key in plain text, to be shown once.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// The hash for storage and lookup.
    pub fn hash(&self) -> ApiKeyHash {
        ApiKeyHash::of(self.reveal())
    }
}

fn checksum_of(secret: &str) -> String {
    base62(&crc32fast::hash(secret.as_bytes()).to_be_bytes(), CHECKSUM_DIGITS)
}

/// A big-endian number in base 62, padded to `digits` digits: by long division, the last digit first.
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
    fn generated_key_is_random_and_has_the_documented_format() {
        let key = ApiKey::generate().unwrap();
        assert_eq!(key.reveal().len(), PREFIX.len() + SECRET_DIGITS + CHECKSUM_DIGITS);
        assert!(key.reveal().starts_with("asy_"));
        assert!(key.reveal()[4..].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_ne!(key.reveal(), ApiKey::generate().unwrap().reveal());
    }

    #[test]
    fn base62_encodes_big_endian_numbers() {
        assert_eq!(base62(&[0, 0, 0, 61], 6), "00000z");
        assert_eq!(base62(&[0, 0, 0, 62], 6), "000010");
        assert_eq!(base62(&u32::MAX.to_be_bytes(), 6), "4gfFC3");
    }

    #[test]
    fn hash_round_trips_through_hexadecimal() {
        let hash = ApiKey::generate().unwrap().hash();
        assert_eq!(ApiKeyHash::from_hex(&hash.to_string()), Some(hash));
        assert_eq!(ApiKeyHash::from_hex("abc"), None);
    }

    #[test]
    fn invalid_key_is_refused() {
        let (longest_short, shortest) = ("x".repeat(31), "x".repeat(32));
        for text in ["", "short", &longest_short, &format!(" {shortest}"), &format!("{shortest}\n")] {
            assert!(ApiKey::parse(text).is_err(), "{text:?}");
        }
        assert!(ApiKey::parse(&format!("{shortest}\0{shortest}")).is_err());
        assert!(ApiKey::parse(&"x".repeat(1_025)).is_err());
        assert!(ApiKey::parse(&shortest).is_ok());
        assert!(ApiKey::parse("a passphrase, wörter and more of them").is_ok());
    }

    #[test]
    fn mistyped_key_is_recognized_by_its_checksum() {
        let key = ApiKey::generate().unwrap();
        assert!(!key.is_mistyped() && key.is_generated());
        let text = key.reveal();
        let (beginning, last) = text.split_at(text.len() - 1);
        let other = if last == "a" { "b" } else { "a" };
        let umlauts = format!("asy_{}", "ü".repeat(30));
        for mistyped in [
            format!("{beginning}{other}"),
            beginning.to_owned(),
            format!("{text}x"),
            text.replacen(&text[10..12], "--", 1),
            umlauts,
            "asy_a-key-that-an-operator-made-up".to_owned(),
        ] {
            let parsed = ApiKey::parse(&mistyped).unwrap();
            assert!(parsed.is_mistyped() && !parsed.is_generated(), "{mistyped}");
            assert_eq!(ApiKey::parse_bootstrap(&mistyped).err(), Some(InvalidBootstrapKey::Mistyped));
        }
        for bootstrap in [text, "a-key-that-an-operator-made-up--", "ASY_a-key-that-an-operator-made-up"] {
            assert!(ApiKey::parse_bootstrap(bootstrap).is_ok(), "{bootstrap}");
        }
        assert!(matches!(ApiKey::parse_bootstrap("asy_short"), Err(InvalidBootstrapKey::Invalid(_))));
    }
}
