//! Random tokens of the console: of sign-in links and of sessions. 32 random bytes in base64url; only their SHA-256 is
//! stored and sent to agent-registry.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::Mac;
use secrecy::{ExposeSecret, SecretString};

use super::secret_hash::secret_hash;
use super::signature::mac;
use crate::runtime::{RandomnessUnavailable, random_bytes};

const BYTES: usize = 32;

/// A token in plain text.
#[derive(Clone)]
pub struct RandomToken(SecretString);

secret_hash! {
    /// SHA-256 of a token, used for storage and look-up.
    TokenHash
}

impl RandomToken {
    /// A new token.
    ///
    /// # Errors
    /// When the operating system's random generator fails.
    pub fn generate() -> Result<Self, RandomnessUnavailable> {
        Ok(Self(URL_SAFE_NO_PAD.encode(random_bytes::<BYTES>()?).into()))
    }

    /// Reads the token of a cookie or an address; `None` for a text of another form.
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
        TokenHash::of(self.reveal())
    }

    /// A value for one purpose that only a holder of the token can compute. Forms carry one, against forged requests.
    pub fn derive(&self, purpose: &str) -> String {
        URL_SAFE_NO_PAD.encode(mac(&self.0, purpose, &[]).finalize().into_bytes())
    }

    /// Whether `value` is the result of [`Self::derive`]; compares in constant time.
    pub fn has_derived(&self, purpose: &str, value: &str) -> bool {
        let value = URL_SAFE_NO_PAD.decode(value).ok();
        value.is_some_and(|value| mac(&self.0, purpose, &[]).verify_slice(&value).is_ok())
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

    #[test]
    fn derived_value_is_valid_for_its_token_and_purpose_only() {
        let (one, other) = (RandomToken::generate().unwrap(), RandomToken::generate().unwrap());
        let value = one.derive("form");
        assert!(one.has_derived("form", &value));
        assert!(!one.has_derived("link", &value) && !other.has_derived("form", &value));
        for wrong in ["", one.reveal(), &value[1..], &format!("{value}A")] {
            assert!(!one.has_derived("form", wrong), "{wrong}");
        }
    }
}
