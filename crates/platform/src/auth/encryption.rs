//! Secrets that the service must be able to read again, at rest: AES-256-GCM (NIST SP 800-38D) under a key that is derived from
//! a signing key, so that a copy of the database alone is of no use.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::signature::SigningKeys;

/// A text that cannot be decrypted with the keys at hand, or content that cannot be encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what is encrypted cannot be read with the keys of security.signing_keys, or is for something else")]
pub struct UnreadableSecret;

impl SigningKeys {
    /// Encrypts `content` under the first key, for one `purpose` and one record: only [`Self::decrypt`] with the same two
    /// reads it again.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn encrypt(&self, purpose: &str, record: &[u8], content: &[u8]) -> Result<String, UnreadableSecret> {
        let (id, key) = self.derived(purpose, None).ok_or(UnreadableSecret)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| UnreadableSecret)?;
        let mut sealed = content.to_vec();
        let nonce =
            key.seal_in_place_append_tag(Aad::from(record), &mut sealed).map_err(|_| UnreadableSecret)?;
        let bytes = [nonce.as_ref().as_slice(), &sealed].concat();
        Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// What [`Self::encrypt`] was given.
    ///
    /// # Errors
    /// When it was altered, is of another purpose or record, or its key is no longer among the keys.
    pub fn decrypt(
        &self,
        purpose: &str,
        record: &[u8],
        encrypted: &str,
    ) -> Result<Vec<u8>, UnreadableSecret> {
        let (id, text) = encrypted.split_once('.').ok_or(UnreadableSecret)?;
        let (_, key) = self.derived(purpose, Some(id)).ok_or(UnreadableSecret)?;
        let key = RandomizedNonceKey::new(&AES_256_GCM, &key).map_err(|_| UnreadableSecret)?;
        let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| UnreadableSecret)?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(UnreadableSecret)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| UnreadableSecret)?;
        let content = key.open_in_place(nonce, Aad::from(record), sealed).map_err(|_| UnreadableSecret)?;
        Ok(content.to_vec())
    }

    /// Whether it was encrypted under the first key: whatever was not has to be encrypted anew before its key is taken away.
    pub fn is_current(&self, encrypted: &str) -> bool {
        let current = self.derived("", None);
        matches!((encrypted.split_once('.'), current), (Some((id, _)), Some((first, _))) if id == first)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    fn keys(text: &str) -> SigningKeys {
        SigningKeys::parse(&SecretString::from(text)).unwrap()
    }

    const OLD: &str = "k1:0123456789abcdef0123456789abcdef";
    const ROTATED: &str = "k2:fedcba9876543210fedcba9876543210,k1:0123456789abcdef0123456789abcdef";

    #[test]
    fn what_was_encrypted_is_read_again_also_after_a_rotation() {
        let encrypted = keys(OLD).encrypt("webhook", b"record", b"secret").unwrap();
        assert!(!encrypted.contains("secret") && keys(OLD).is_current(&encrypted));
        assert_eq!(keys(ROTATED).decrypt("webhook", b"record", &encrypted).unwrap(), b"secret");
        assert!(!keys(ROTATED).is_current(&encrypted));
        let anew = keys(ROTATED).encrypt("webhook", b"record", b"secret").unwrap();
        assert_eq!(keys(OLD).decrypt("webhook", b"record", &anew), Err(UnreadableSecret));
    }

    #[test]
    fn no_two_encryptions_are_alike() {
        let encrypt = || keys(OLD).encrypt("webhook", b"record", b"secret").unwrap();
        assert_ne!(encrypt(), encrypt());
    }

    #[test]
    fn what_was_altered_or_is_of_another_record_or_purpose_is_refused() {
        let encrypted = keys(OLD).encrypt("webhook", b"record", b"secret").unwrap();
        assert!(keys(OLD).decrypt("cursor", b"record", &encrypted).is_err());
        assert!(keys(OLD).decrypt("webhook", b"another", &encrypted).is_err());
        for index in 0..encrypted.len() {
            let mut altered = encrypted.clone().into_bytes();
            altered[index] = if altered[index] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert!(keys(OLD).decrypt("webhook", b"record", &altered).is_err(), "{altered}");
        }
        for text in ["", "k1", "k1.", "k1.AAAA"] {
            assert!(keys(OLD).decrypt("webhook", b"record", text).is_err(), "{text}");
        }
    }
}
