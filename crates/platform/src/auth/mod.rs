//! Credentials and signatures.

mod api_key;
mod claims;
mod encryption;
mod hs256;
mod random_token;
mod secret_hash;
mod service_token;
mod signature;

pub use self::api_key::{ApiKey, ApiKeyHash, InvalidApiKey, InvalidBootstrapKey};
pub use self::claims::{Audience, ServiceClaims};
pub use self::encryption::SecretEncryptionError;
pub use self::random_token::{RandomToken, TokenHash};
pub use self::service_token::{InvalidToken, ServiceTokens, SigningFailed, UnusableSecret};
pub use self::signature::{InvalidKeys, InvalidSignature, KeyRing};
