//! HS256 (RFC 7518, section 3.2) for `jsonwebtoken`, with the HMAC library that also signs cursors. The providers that come
//! with `jsonwebtoken` have every algorithm of JWT, and need RSA, elliptic curves or a C library; service tokens use only HS256.

use hmac::{Hmac, KeyInit, Mac};
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use sha2::Sha256;
use signature::{Signer, Verifier};

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory, verifier_factory, key_utils: KeyUtils::new_unimplemented() };

/// Makes HS256 the one algorithm of `jsonwebtoken` in this process; repeated calls do nothing.
pub(super) fn install() {
    // It fails only when an earlier call has installed the provider.
    let _installed_before = PROVIDER.install_default();
}

struct Hs256(Hmac<Sha256>);

impl Hs256 {
    fn new(algorithm: Algorithm, key: &[u8]) -> Result<Self, Error> {
        if algorithm != Algorithm::HS256 {
            return Err(ErrorKind::InvalidAlgorithm.into());
        }
        Hmac::new_from_slice(key).map(Self).map_err(|_| ErrorKind::InvalidKeyFormat.into())
    }
}

fn signer_factory(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Ok(Box::new(Hs256::new(*algorithm, key.as_bytes())?))
}

fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    Ok(Box::new(Hs256::new(*algorithm, key.try_get_as_bytes()?)?))
}

impl Signer<Vec<u8>> for Hs256 {
    fn try_sign(&self, message: &[u8]) -> Result<Vec<u8>, signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        Ok(mac.finalize().into_bytes().to_vec())
    }
}

impl Verifier<Vec<u8>> for Hs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        let mut mac = self.0.clone();
        mac.update(message);
        // In constant time.
        mac.verify_slice(signature).map_err(|_| signature::Error::new())
    }
}

impl JwtSigner for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

impl JwtVerifier for Hs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::HS256
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::crypto::{sign, verify};

    use super::*;

    /// Appendix A.1.
    #[test]
    fn signature_equals_the_example_of_rfc_7515() {
        install();
        let key = jsonwebtoken::DecodingKey::from_base64_secret(KEY_BASE64).unwrap();
        let signing = EncodingKey::from_base64_secret(KEY_BASE64).unwrap();
        let signed = sign(INPUT.as_bytes(), &signing, Algorithm::HS256).unwrap();
        assert_eq!(signed, SIGNATURE);
        assert!(verify(SIGNATURE, INPUT.as_bytes(), &key, Algorithm::HS256).unwrap());
        assert!(!verify(SIGNATURE, b"another input", &key, Algorithm::HS256).unwrap());
        assert!(!verify(&SIGNATURE[..40], INPUT.as_bytes(), &key, Algorithm::HS256).unwrap());
    }

    #[test]
    fn other_algorithms_are_refused() {
        install();
        for algorithm in [Algorithm::HS384, Algorithm::HS512, Algorithm::RS256, Algorithm::ES256] {
            assert!(sign(b"x", &EncodingKey::from_secret(&[0; 64]), algorithm).is_err(), "{algorithm:?}");
            assert!(
                verify("", b"x", &DecodingKey::from_secret(&[0; 64]), algorithm).is_err(),
                "{algorithm:?}"
            );
        }
    }

    const KEY_BASE64: &str =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ+EstJQLr/T+1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow==";
    const INPUT: &str = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
                         eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    const SIGNATURE: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
}
