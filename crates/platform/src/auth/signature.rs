//! Signatures of values that clients send back: cursors and download addresses. HMAC-SHA-256 (RFC 2104) with named keys
//! that can be rotated: the first key signs, all keys verify.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

const MIN_SECRET_LENGTH: usize = 32;

/// The configured keys cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "security.signing_keys must be a list such as `k2:SECRET,k1:OLDER_SECRET`, each secret of 32 characters or more: {0}"
)]
pub struct InvalidKeys(String);

/// The signature does not match the content, or its key is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not match")]
pub struct InvalidSignature;

/// The keys of a service, the current one first. They sign addresses and cursors, and encrypt stored secrets; what was made for
/// one purpose is not valid for another.
#[derive(Clone)]
pub struct KeyRing {
    keys: Vec<(String, SecretString)>,
}

impl KeyRing {
    /// Reads `id:secret,id:secret,…`; the first key signs.
    ///
    /// # Errors
    /// When there is no key, an id is empty or repeated, or a secret is too short.
    pub fn parse(text: &SecretString) -> Result<Self, InvalidKeys> {
        let mut keys: Vec<(String, SecretString)> = Vec::new();
        for entry in text.expose_secret().split(',') {
            let (id, secret) =
                entry.trim().split_once(':').ok_or_else(|| InvalidKeys("an entry has no `:`".to_owned()))?;
            if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return Err(InvalidKeys("a key id has letters, digits and `-` only".to_owned()));
            }
            if keys.iter().any(|(known, _)| known == id) {
                return Err(InvalidKeys(format!("key id `{id}` is repeated")));
            }
            if secret.len() < MIN_SECRET_LENGTH {
                return Err(InvalidKeys(format!("the secret of key `{id}` is too short")));
            }
            keys.push((id.to_owned(), secret.to_owned().into()));
        }
        Ok(Self { keys })
    }

    /// Signs `content` for one `purpose`: a signature for another purpose never matches. Returns the key id and the
    /// signature in URL-safe base64.
    pub fn sign(&self, purpose: &str, content: &[u8]) -> (&str, String) {
        // `parse` is the only constructor and never leaves the list empty.
        let (id, secret) = &self.keys[0];
        (id, URL_SAFE_NO_PAD.encode(mac(secret, purpose, content).finalize().into_bytes()))
    }

    /// Checks a signature, in constant time.
    ///
    /// # Errors
    /// [`InvalidSignature`] for an unknown key or a signature of other content or another purpose.
    pub fn verify(
        &self,
        purpose: &str,
        content: &[u8],
        key_id: &str,
        signature: &str,
    ) -> Result<(), InvalidSignature> {
        let (_, secret) = self.keys.iter().find(|(id, _)| id == key_id).ok_or(InvalidSignature)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| InvalidSignature)?;
        mac(secret, purpose, content).verify_slice(&signature).map_err(|_| InvalidSignature)
    }

    /// Derives a 32-byte key for `purpose` from the named key, or from the first one; returns it with the key id.
    pub(super) fn derive_key(&self, purpose: &str, key_id: Option<&str>) -> Option<(&str, [u8; 32])> {
        let is_wanted = |id: &str| key_id.is_none_or(|wanted| wanted == id);
        let (id, secret) = self.keys.iter().find(|(id, _)| is_wanted(id))?;
        Some((id, mac(secret, "derived key", purpose.as_bytes()).finalize().into_bytes().into()))
    }

    /// One opaque text with `content` and its signature.
    pub fn encode_signed(&self, purpose: &str, content: &[u8]) -> String {
        let (id, signature) = self.sign(purpose, content);
        format!("{}.{id}.{signature}", URL_SAFE_NO_PAD.encode(content))
    }

    /// The content of a signed text.
    ///
    /// # Errors
    /// [`InvalidSignature`] for a text that is not from [`Self::encode_signed`] with this purpose.
    pub fn decode_signed(&self, purpose: &str, text: &str) -> Result<Vec<u8>, InvalidSignature> {
        let mut parts = text.splitn(3, '.');
        let (Some(content), Some(id), Some(signature)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(InvalidSignature);
        };
        let content = URL_SAFE_NO_PAD.decode(content).map_err(|_| InvalidSignature)?;
        self.verify(purpose, &content, id, signature)?;
        Ok(content)
    }
}

/// The message authentication code of `content` for one `purpose`.
pub(super) fn mac(secret: &SecretString, purpose: &str, content: &[u8]) -> Hmac<Sha256> {
    #[allow(clippy::expect_used, reason = "HMAC accepts every key length (RFC 2104, section 3)")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).expect("any key length");
    // The length keeps `purpose` and `content` apart.
    mac.update(&(purpose.len() as u64).to_be_bytes());
    mac.update(purpose.as_bytes());
    mac.update(content);
    mac
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::auth) const OLD: &str = "k1:0123456789abcdef0123456789abcdef";
    pub(in crate::auth) const ROTATED: &str =
        "k2:fedcba9876543210fedcba9876543210,k1:0123456789abcdef0123456789abcdef";

    pub(in crate::auth) fn keys(text: &str) -> KeyRing {
        KeyRing::parse(&SecretString::from(text)).unwrap()
    }

    /// The text with each of its characters altered in turn.
    pub(in crate::auth) fn alterations(text: &str) -> impl Iterator<Item = String> {
        (0..text.len()).map(move |index| {
            let mut altered = text.to_owned();
            let other = if altered[index..].starts_with('A') { "B" } else { "A" };
            altered.replace_range(index..=index, other);
            altered
        })
    }

    #[test]
    fn signed_text_is_decoded_after_a_key_rotation() {
        let signed = keys(OLD).encode_signed("cursor", b"content");
        assert_eq!(keys(ROTATED).decode_signed("cursor", &signed), Ok(b"content".to_vec()));
        let signed = keys(ROTATED).encode_signed("cursor", b"content");
        assert_eq!(keys(OLD).decode_signed("cursor", &signed), Err(InvalidSignature));
    }

    #[test]
    fn altered_text_or_another_purpose_is_refused() {
        let signed = keys(OLD).encode_signed("cursor", b"content");
        assert!(keys(OLD).decode_signed("download", &signed).is_err());
        for altered in alterations(&signed) {
            assert!(keys(OLD).decode_signed("cursor", &altered).is_err(), "{altered}");
        }
        assert!(keys(OLD).decode_signed("cursor", "").is_err());
    }

    #[test]
    fn invalid_keys_are_refused() {
        for text in ["", "k1", "k1:short", &format!("{OLD},{OLD}"), ":0123456789abcdef0123456789abcdef"] {
            assert!(KeyRing::parse(&SecretString::from(text)).is_err(), "{text}");
        }
    }
}
