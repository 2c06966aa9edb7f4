//! Random tokens of the console: of one-time addresses and of sessions. 32 random bytes in base64url; only their SHA-256 is
//! stored and sent to agent-registry.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::runtime::{RandomnessUnavailable, random_bytes};

const BYTES: usize = 32;

/// A token in plain text.
#[derive(Clone)]
pub struct RandomToken(SecretString);

/// SHA-256 of a token, used for storage and look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl RandomToken {
    /// A new token.
    ///
    /// # Errors
    /// When the operating system's random generator fails.
    pub fn generate() -> Result<Self, RandomnessUnavailable> {
        Ok(Self(URL_SAFE_NO_PAD.encode(random_bytes::<BYTES>()?).into()))
    }

    /// The token of a cookie or an address; `None` when it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        (bytes.len() == BYTES).then(|| Self(text.to_owned().into()))
    }

    /// The token in plain text.
    pub fn reveal(&self) -> &str {
        self.0.expose_secret()
    }

    /// The hash for storage and look-up.
    pub fn hash(&self) -> TokenHash {
        TokenHash(Sha256::digest(self.reveal().as_bytes()).into())
    }

    /// A value that only the holder of the token can make, for one purpose: the forms of a session carry one.
    pub fn derive(&self, purpose: &str) -> String {
        let digest = Sha256::new_with_prefix(purpose.as_bytes())
            .chain_update([0])
            .chain_update(self.reveal().as_bytes())
            .finalize();
        URL_SAFE_NO_PAD.encode(digest)
    }
}

impl TokenHash {
    /// The 32 bytes, for storage.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Decodes the hexadecimal form that services exchange.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut hash = [0; 32];
        hex::decode_to_slice(text, &mut hash).ok()?;
        Some(Self(hash))
    }
}

/// Lower-case hexadecimal.
impl fmt::Display for TokenHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_round_trips_and_other_texts_are_none() {
        let token = RandomToken::generate().unwrap();
        assert_eq!(RandomToken::parse(token.reveal()).unwrap().hash(), token.hash());
        assert_eq!(TokenHash::from_hex(&token.hash().to_string()), Some(token.hash()));
        assert_ne!(RandomToken::generate().unwrap().hash(), token.hash());
        for text in ["", "short", &"A".repeat(42), &"A".repeat(44), &format!("{}=", token.reveal())] {
            assert!(RandomToken::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn derived_value_depends_on_token_and_purpose() {
        let (one, other) = (RandomToken::generate().unwrap(), RandomToken::generate().unwrap());
        assert_eq!(one.derive("form"), one.derive("form"));
        assert_ne!(one.derive("form"), one.derive("link"));
        assert_ne!(one.derive("form"), other.derive("form"));
        assert_ne!(one.derive("form"), one.reveal());
    }
}
