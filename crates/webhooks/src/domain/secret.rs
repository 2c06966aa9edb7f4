//! Signing secrets and signatures: Standard Webhooks 1.0, symmetric (`v1`, HMAC-SHA256).

use assay_contracts::ids::{WebhookDeliveryId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_platform::auth::{KeyRing, SecretEncryptionError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The standard requires 24 to 64 bytes.
pub const SECRET_BYTES: usize = 32;

const PREFIX: &str = "whsec_";
const PURPOSE: &str = "secret of a webhook";

/// The signing secret of an endpoint, redacted in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

impl From<[u8; SECRET_BYTES]> for Secret {
    fn from(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Secret {
    /// As shown to the owner: `whsec_` and base64.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Encrypts the secret for storage, bound to this endpoint.
    ///
    /// # Errors
    /// When the operating system's random generator fails.
    pub fn seal(&self, keys: &KeyRing, endpoint: WebhookId) -> Result<SealedSecret, SecretEncryptionError> {
        Ok(SealedSecret(keys.encrypt(PURPOSE, endpoint.as_uuid().as_bytes(), &self.0)?))
    }

    /// The signature of a message: `v1,` and base64. `seconds`: the time of the attempt, epoch seconds.
    pub fn sign(&self, id: WebhookDeliveryId, seconds: i64, payload: &str) -> String {
        // HMAC takes keys of any length, so this constructor has no failing case.
        #[allow(clippy::expect_used, reason = "HMAC accepts every key length (RFC 2104, section 3)")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any key length");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(payload.as_bytes());
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// An encrypted secret, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecret(String);

impl SealedSecret {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Decrypts the secret.
    ///
    /// # Errors
    /// When the encryption key is no longer configured.
    pub fn open(&self, keys: &KeyRing, endpoint: WebhookId) -> Result<Secret, SecretEncryptionError> {
        keys.decrypt(PURPOSE, endpoint.as_uuid().as_bytes(), &self.0).map(Secret)
    }

    /// Whether it is encrypted with the first signing key.
    pub fn uses_first_key(&self, keys: &KeyRing) -> bool {
        keys.uses_first_key(&self.0)
    }
}

impl From<String> for SealedSecret {
    fn from(stored: String) -> Self {
        Self(stored)
    }
}

/// The secrets of an endpoint: after a rotation the previous one keeps signing for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedSecrets {
    pub current: SealedSecret,
    /// The previous secret, and until when it signs.
    pub previous: Option<(SealedSecret, Timestamp)>,
}

impl SealedSecrets {
    /// The secrets that sign at `now`, the current one first.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn active_at(
        &self,
        keys: &KeyRing,
        endpoint: WebhookId,
        now: Timestamp,
    ) -> Result<Vec<Secret>, SecretEncryptionError> {
        let previous = self.previous.iter().filter(|(_, until)| *until > now).map(|(secret, _)| secret);
        std::iter::once(&self.current).chain(previous).map(|secret| secret.open(keys, endpoint)).collect()
    }
}

/// The header `webhook-signature`: one signature per secret, separated by spaces.
pub fn signatures(secrets: &[Secret], id: WebhookDeliveryId, seconds: i64, payload: &str) -> String {
    let signatures: Vec<String> = secrets.iter().map(|secret| secret.sign(id, seconds, payload)).collect();
    signatures.join(" ")
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::{new_id, now};
    use standardwebhooks::Webhook;

    use super::*;

    fn keys() -> KeyRing {
        KeyRing::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).unwrap()
    }

    #[test]
    fn signature_matches_official_library() {
        let secret = Secret::from([7; SECRET_BYTES]);
        let official = Webhook::new(&secret.reveal()).unwrap();
        let (id, payload) = (new_id::<WebhookDeliveryId>(), r#"{"type":"webhook.test","data":{"ü":"–"}}"#);
        for seconds in [0, 1_763_600_000] {
            let theirs = official.sign(&id.to_string(), seconds, payload.as_bytes()).unwrap();
            assert_eq!(secret.sign(id, seconds, payload), theirs);
        }
    }

    #[test]
    fn official_library_accepts_either_of_two_secrets_only() {
        let (old, new) = (Secret::from([1; SECRET_BYTES]), Secret::from([2; SECRET_BYTES]));
        let (id, seconds) = (new_id::<WebhookDeliveryId>(), now().as_millis() / 1_000);
        let header = signatures(&[new.clone(), old.clone()], id, seconds, "{}");
        let mut headers = reqwest::header::HeaderMap::new();
        headers.insert("webhook-id", id.to_string().parse().unwrap());
        headers.insert("webhook-timestamp", seconds.to_string().parse().unwrap());
        headers.insert("webhook-signature", header.parse().unwrap());
        let verify = |secret: &Secret, payload: &[u8]| {
            Webhook::new(&secret.reveal()).unwrap().verify(payload, &headers).is_ok()
        };
        assert!(verify(&old, b"{}") && verify(&new, b"{}"));
        assert!(!verify(&Secret::from([3; SECRET_BYTES]), b"{}") && !verify(&new, b"{ }"));
    }

    #[test]
    fn sealed_secret_is_bound_to_its_endpoint() {
        let (endpoint, secret) = (new_id(), Secret::from([7; SECRET_BYTES]));
        let sealed = secret.seal(&keys(), endpoint).unwrap();
        assert_eq!(sealed.open(&keys(), endpoint).unwrap(), secret);
        assert!(sealed.open(&keys(), new_id()).is_err());
        assert!(!sealed.as_str().contains(&secret.reveal()["whsec_".len()..]));
    }

    #[test]
    fn previous_secret_signs_until_it_expires() {
        let (endpoint, at) = (new_id(), Timestamp::saturating_from_millis);
        let seal = |byte| Secret::from([byte; SECRET_BYTES]).seal(&keys(), endpoint).unwrap();
        let secrets = SealedSecrets { current: seal(1), previous: Some((seal(2), at(1_000))) };
        let signing = |now| secrets.active_at(&keys(), endpoint, at(now)).unwrap();
        assert_eq!(signing(999), [[1; SECRET_BYTES].into(), [2; SECRET_BYTES].into()]);
        assert_eq!(signing(1_000), [Secret::from([1; SECRET_BYTES])]);
    }
}
