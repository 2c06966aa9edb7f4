//! Encryption at rest of secrets that the service must read back: AES-256-GCM (NIST SP 800-38D) with a key derived from a
//! signing key, so a copy of the database alone does not reveal them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::signature::KeyRing;

/// Encryption or decryption failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the secret cannot be encrypted, or it cannot be decrypted: its key is not among security.signing_keys, \
     or it belongs to another record"
)]
pub struct SecretEncryptionError;

impl KeyRing {
    /// Encrypts `content` with the first key, bound to `purpose` and `record`: [`Self::decrypt`] needs the same two.
    ///
    /// # Errors
    /// When the operating system's random generator fails.
    pub fn encrypt(
        &self,
        purpose: &str,
        record: &[u8],
        content: &[u8],
    ) -> Result<String, SecretEncryptionError> {
        let (id, key) = self.derive_key(purpose, None).ok_or(SecretEncryptionError)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| SecretEncryptionError)?;
        let mut sealed = content.to_vec();
        aes_256_gcm(&key)?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(record), &mut sealed)
            .map_err(|_| SecretEncryptionError)?;
        let bytes = [nonce.as_slice(), &sealed].concat();
        Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Decrypts a text of [`Self::encrypt`].
    ///
    /// # Errors
    /// When it was altered, belongs to another purpose or record, or its key is no longer configured.
    pub fn decrypt(
        &self,
        purpose: &str,
        record: &[u8],
        encrypted: &str,
    ) -> Result<Vec<u8>, SecretEncryptionError> {
        let (id, text) = encrypted.split_once('.').ok_or(SecretEncryptionError)?;
        let (_, key) = self.derive_key(purpose, Some(id)).ok_or(SecretEncryptionError)?;
        let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| SecretEncryptionError)?;
        let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN).ok_or(SecretEncryptionError)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SecretEncryptionError)?;
        let content = aes_256_gcm(&key)?
            .open_in_place(nonce, Aad::from(record), sealed)
            .map_err(|_| SecretEncryptionError)?;
        Ok(content.to_vec())
    }

    /// Whether this was encrypted with the first key. A text of an older key must be re-encrypted before that key is removed.
    pub fn uses_first_key(&self, encrypted: &str) -> bool {
        let Some((id, _)) = encrypted.split_once('.') else { return false };
        // Only the id of the first key is used, which does not depend on the purpose.
        self.derive_key("", None).is_some_and(|(first_id, _)| first_id == id)
    }
}

/// Nonces of 96 bits may be random for up to 2^32 secrets of one key (NIST SP 800-38D, section 8.3), far more than there are.
fn aes_256_gcm(key: &[u8]) -> Result<LessSafeKey, SecretEncryptionError> {
    UnboundKey::new(&AES_256_GCM, key).map(LessSafeKey::new).map_err(|_| SecretEncryptionError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::signature::tests::{OLD, ROTATED, alterations, keys};

    #[test]
    fn decrypt_succeeds_after_a_key_rotation() {
        let encrypted = keys(OLD).encrypt("webhook", b"record", b"secret").unwrap();
        assert!(!encrypted.contains("secret") && keys(OLD).uses_first_key(&encrypted));
        assert_eq!(keys(ROTATED).decrypt("webhook", b"record", &encrypted).unwrap(), b"secret");
        assert!(!keys(ROTATED).uses_first_key(&encrypted));
        let reencrypted = keys(ROTATED).encrypt("webhook", b"record", b"secret").unwrap();
        assert_eq!(keys(OLD).decrypt("webhook", b"record", &reencrypted), Err(SecretEncryptionError));
    }

    #[test]
    fn encryption_is_randomized() {
        let encrypt = || keys(OLD).encrypt("webhook", b"record", b"secret").unwrap();
        assert_ne!(encrypt(), encrypt());
    }

    #[test]
    fn decrypt_refuses_altered_text_or_another_record_or_purpose() {
        let encrypted = keys(OLD).encrypt("webhook", b"record", b"secret").unwrap();
        assert!(keys(OLD).decrypt("cursor", b"record", &encrypted).is_err());
        assert!(keys(OLD).decrypt("webhook", b"another", &encrypted).is_err());
        for altered in alterations(&encrypted) {
            assert!(keys(OLD).decrypt("webhook", b"record", &altered).is_err(), "{altered}");
        }
        for text in ["", "k1", "k1.", "k1.AAAA"] {
            assert!(keys(OLD).decrypt("webhook", b"record", text).is_err(), "{text}");
        }
    }
}
