//! Service tokens: short-lived signed JWTs (RFC 7519). The gateway exchanges an API key for one; a service refuses a call
//! without a token for its audience.
//!
//! During a change of the secret a process accepts two of them: `security.service_token_secret` signs and verifies,
//! `security.service_token_accepted_secret` verifies only. A token names its secret in the header `kid`.

use std::str::FromStr;

use assay_contracts::ids::OrganizationId;
use assay_contracts::tenant::{Scopes, Tenant};
use assay_contracts::time::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::claims::{Audience, ServiceClaims};
use crate::runtime::now;

/// Lifetime of a token, in seconds.
const LIFETIME_SECONDS: i64 = 60;
/// How far in the future `iat` may be, in seconds. `jsonwebtoken` does not compare it with the clock; a generous limit is enough,
/// because `exp` bounds the lifetime.
const MAX_FUTURE_SECONDS: i64 = 60;
const ISSUER: &str = "assay";
/// RFC 7518, section 3.2 requires 256 bits for HS256.
const MIN_SECRET_LENGTH: usize = 32;

/// The configured secret cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("security.{setting} must have at least 32 characters")]
pub struct UnusableSecret {
    setting: &'static str,
}

/// A token is not accepted. Without the reason, which would only help an attacker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the service token is missing, expired, made for another service or forged")]
pub struct InvalidToken;

/// A token could not be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the service token could not be signed")]
pub struct SigningFailed;

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    iat: i64,
    exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    org: Option<OrganizationId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
}

/// Issues and verifies service tokens.
#[derive(Clone)]
pub struct ServiceTokens {
    encoding: EncodingKey,
    /// The first one signs, too (`encoding`); a second one only verifies.
    accepted: Vec<AcceptedSecret>,
}

#[derive(Clone)]
struct AcceptedSecret {
    id: String,
    decoding: DecodingKey,
}

impl ServiceTokens {
    /// From the secret shared by all services.
    ///
    /// # Errors
    /// When the secret is too short.
    pub fn new(secret: &SecretString) -> Result<Self, UnusableSecret> {
        super::hs256::install();
        let accepted = vec![AcceptedSecret::new(secret, "service_token_secret")?];
        let encoding = EncodingKey::from_secret(secret.expose_secret().as_bytes());
        Ok(Self { encoding, accepted })
    }

    /// Accepts tokens that were signed with `secret`, too. Empty: no other secret.
    ///
    /// # Errors
    /// When the secret is too short.
    pub fn accepting(mut self, secret: &SecretString) -> Result<Self, UnusableSecret> {
        if !secret.expose_secret().is_empty() {
            self.accepted.push(AcceptedSecret::new(secret, "service_token_accepted_secret")?);
        }
        Ok(self)
    }

    /// A token for calls to `audience`.
    ///
    /// # Errors
    /// When signing fails.
    pub fn issue(
        &self,
        audience: Audience,
        claims: &ServiceClaims,
        now: Timestamp,
    ) -> Result<String, SigningFailed> {
        let iat = now.as_millis() / 1000;
        let (org, scope) = match claims {
            ServiceClaims::Tenant(tenant) => (Some(tenant.organization_id), Some(tenant.scopes.to_string())),
            ServiceClaims::Service => (None, None),
        };
        let claims = Claims {
            iss: ISSUER.to_owned(),
            aud: audience.as_str().to_owned(),
            iat,
            exp: iat + LIFETIME_SECONDS,
            org,
            scope,
        };
        let kid = self.accepted.first().map(|secret| secret.id.clone());
        let header = Header { kid, ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, &claims, &self.encoding).map_err(|_| SigningFailed)
    }

    /// Verifies a token received by `audience`: algorithm, signature, issuer, audience and time.
    ///
    /// # Errors
    /// [`InvalidToken`] for anything but an unexpired token of [`Self::issue`] for this audience.
    pub fn verify(&self, audience: Audience, token: &str) -> Result<ServiceClaims, InvalidToken> {
        let now_seconds = now().as_millis() / 1000;
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[audience.as_str()]);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        validation.validate_nbf = true;
        // Clock skew between machines, in seconds, for `exp` and `nbf`.
        validation.leeway = 5;
        let kid = jsonwebtoken::decode_header(token).map_err(|_| InvalidToken)?.kid;
        // A token without `kid` is tried with every secret.
        let may_have_signed = |secret: &&AcceptedSecret| kid.as_ref().is_none_or(|kid| *kid == secret.id);
        let decode = |secret: &AcceptedSecret| jsonwebtoken::decode(token, &secret.decoding, &validation);
        let decoded = self.accepted.iter().filter(may_have_signed).find_map(|secret| decode(secret).ok());
        let claims: Claims = decoded.ok_or(InvalidToken)?.claims;
        let is_from_the_future = claims.iat > now_seconds + MAX_FUTURE_SECONDS;
        if is_from_the_future || claims.exp.saturating_sub(claims.iat) > LIFETIME_SECONDS {
            return Err(InvalidToken);
        }
        match (claims.org, claims.scope) {
            (Some(organization_id), Some(scope)) => {
                let scopes = Scopes::from_str(&scope).map_err(|_| InvalidToken)?;
                Ok(ServiceClaims::Tenant(Tenant { organization_id, scopes }))
            }
            (None, None) => Ok(ServiceClaims::Service),
            _ => Err(InvalidToken),
        }
    }
}

impl AcceptedSecret {
    fn new(secret: &SecretString, setting: &'static str) -> Result<Self, UnusableSecret> {
        let bytes = secret.expose_secret().as_bytes();
        if bytes.len() < MIN_SECRET_LENGTH {
            return Err(UnusableSecret { setting });
        }
        Ok(Self { id: secret_id(bytes), decoding: DecodingKey::from_secret(bytes) })
    }
}

/// Names a secret without revealing it: no settings for ids are needed, and all processes agree on them.
fn secret_id(secret: &[u8]) -> String {
    let digest = Sha256::new().chain_update(b"assay service token secret\0").chain_update(secret).finalize();
    hex::encode(&digest[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(secret: &str) -> ServiceTokens {
        ServiceTokens::new(&SecretString::from(secret)).unwrap()
    }

    fn tenant() -> ServiceClaims {
        ServiceClaims::Tenant(Tenant {
            organization_id: crate::runtime::new_id(),
            scopes: Scopes::default_for_keys(),
        })
    }

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn token_carries_its_tenant() {
        let claims = tenant();
        let token = tokens(SECRET).issue(Audience::Ingest, &claims, now()).unwrap();
        assert_eq!(tokens(SECRET).verify(Audience::Ingest, &token), Ok(claims));
    }

    #[test]
    fn expired_token_or_one_of_another_audience_or_secret_is_refused() {
        let issue = |at| tokens(SECRET).issue(Audience::Ingest, &tenant(), at).unwrap();
        let token = issue(now());
        assert_eq!(tokens(SECRET).verify(Audience::Export, &token), Err(InvalidToken));
        assert_eq!(tokens(&SECRET.to_uppercase()).verify(Audience::Ingest, &token), Err(InvalidToken));
        let expired = issue(now().plus_millis(-120_000));
        assert_eq!(tokens(SECRET).verify(Audience::Ingest, &expired), Err(InvalidToken));
    }

    #[test]
    fn token_from_the_future_is_refused() {
        let issued_in = |seconds: i64| {
            tokens(SECRET).issue(Audience::Ingest, &tenant(), now().plus_millis(seconds * 1_000)).unwrap()
        };
        assert!(tokens(SECRET).verify(Audience::Ingest, &issued_in(MAX_FUTURE_SECONDS - 5)).is_ok());
        let early = issued_in(MAX_FUTURE_SECONDS + 5);
        assert_eq!(tokens(SECRET).verify(Audience::Ingest, &early), Err(InvalidToken));
    }

    #[test]
    fn unsigned_token_is_refused() {
        use base64::Engine;
        let token = tokens(SECRET).issue(Audience::Ingest, &tenant(), now()).unwrap();
        let claims = token.split('.').nth(1).unwrap();
        let header =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(br#"{"alg":"none","typ":"JWT"}"#);
        for forged in
            [format!("{header}.{claims}."), format!("{header}.{claims}"), String::new(), "a.b.c".into()]
        {
            assert_eq!(tokens(SECRET).verify(Audience::Ingest, &forged), Err(InvalidToken), "{forged}");
        }
    }

    #[test]
    fn short_secret_is_refused_with_its_setting() {
        let short = SecretString::from("x".repeat(31));
        let refusal = |tokens: Result<ServiceTokens, UnusableSecret>| tokens.err().unwrap().to_string();
        let of_first = refusal(ServiceTokens::new(&short));
        assert_eq!(of_first, "security.service_token_secret must have at least 32 characters");
        let of_second = refusal(tokens(SECRET).accepting(&short));
        assert_eq!(of_second, "security.service_token_accepted_secret must have at least 32 characters");
        assert!(tokens(SECRET).accepting(&SecretString::from("")).is_ok());
    }

    /// The steps of SECURITY.md, in which each process has the settings of a step or of the one before.
    #[test]
    fn secret_changes_without_a_refused_token() {
        let new = SECRET.to_uppercase();
        let process = |secret: &str, accepted: &str| {
            tokens(secret).accepting(&SecretString::from(accepted.to_owned())).unwrap()
        };
        let step = |number: usize| match number {
            0 => process(SECRET, ""),
            1 => process(SECRET, &new),
            2 => process(&new, SECRET),
            _ => process(&new, ""),
        };
        let accepts = |caller: usize, callee: usize| {
            let token = step(caller).issue(Audience::Ingest, &ServiceClaims::Service, now()).unwrap();
            step(callee).verify(Audience::Ingest, &token).is_ok()
        };
        for earlier in 0..3 {
            let later = earlier + 1;
            for (caller, callee) in [(earlier, earlier), (earlier, later), (later, earlier), (later, later)] {
                assert!(accepts(caller, callee), "from step {caller} to step {callee}");
            }
        }
        for (caller, callee) in [(0, 3), (3, 0), (2, 0), (1, 3)] {
            assert!(!accepts(caller, callee), "from step {caller} to step {callee}");
        }
    }

    #[test]
    fn token_without_a_secret_id_is_accepted_and_with_a_wrong_one_refused() {
        let other = SECRET.to_uppercase();
        let both = tokens(SECRET).accepting(&SecretString::from(other.clone())).unwrap();
        let (iat, encoding) = (now().as_millis() / 1_000, EncodingKey::from_secret(other.as_bytes()));
        let verify = |kid: Option<String>| {
            let claims = Claims {
                iss: ISSUER.to_owned(),
                aud: Audience::Ingest.as_str().to_owned(),
                iat,
                exp: iat + LIFETIME_SECONDS,
                org: None,
                scope: None,
            };
            let header = Header { kid, ..Header::new(Algorithm::HS256) };
            let token = jsonwebtoken::encode(&header, &claims, &encoding).unwrap();
            both.verify(Audience::Ingest, &token)
        };
        assert_eq!(verify(None), Ok(ServiceClaims::Service));
        assert_eq!(verify(Some(secret_id(other.as_bytes()))), Ok(ServiceClaims::Service));
        for wrong in [secret_id(SECRET.as_bytes()), String::new(), "../../etc/passwd".to_owned()] {
            assert_eq!(verify(Some(wrong.clone())), Err(InvalidToken), "{wrong}");
        }
    }
}
