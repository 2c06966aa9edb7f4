//! Makes an API key.

use assay_contracts::ids::ApiKeyId;
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_platform::auth::ApiKey;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{RandomnessUnavailable, new_id, now};

use crate::domain::{KeyName, OrganizationName};
use crate::store::{self, KeyStored, KeyToStore};

/// What key to make.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Whose it is; created when there is no organization of that name.
    pub organization: OrganizationName,
    /// What it is called.
    pub name: KeyName,
    /// What it may do.
    pub scopes: Scopes,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
}

/// A new key, to be shown to its owner once.
pub struct CreatedKey {
    /// Id of its record.
    pub id: ApiKeyId,
    /// The key itself; only its hash is kept.
    pub key: ApiKey,
}

/// Why no key was made.
#[derive(Debug, thiserror::Error)]
pub enum CreateKeyError {
    /// The expiry lies in the past.
    #[error("the key would expire at {0}, which has passed: choose a later moment")]
    ExpiresInThePast(Timestamp),
    /// The same key exists, which randomness rules out.
    #[error("the generated key exists already: the randomness of this machine cannot be trusted")]
    Repeated,
    /// There is no randomness.
    #[error(transparent)]
    Randomness(#[from] RandomnessUnavailable),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Makes a key, and its organization when there is none of that name.
///
/// # Errors
/// [`CreateKeyError`]; nothing is stored then.
pub async fn create(database: &Database, new: NewKey) -> Result<CreatedKey, CreateKeyError> {
    let created_at = now();
    if let Some(expires_at) = new.expires_at.filter(|expires_at| *expires_at <= created_at) {
        return Err(CreateKeyError::ExpiresInThePast(expires_at));
    }
    let key = ApiKey::generate()?;
    let id = new_id();
    let record = KeyToStore {
        id,
        hash: key.hash(),
        organization: new.organization,
        new_organization_id: new_id(),
        name: new.name,
        scopes: new.scopes,
        expires_at: new.expires_at,
        created_at,
    };
    match store::open(database).create_key(record).await? {
        KeyStored::Created => Ok(CreatedKey { id, key }),
        KeyStored::Known => Err(CreateKeyError::Repeated),
    }
}
