//! Creates an API key.

use assay_contracts::ids::ApiKeyId;
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_platform::auth::ApiKey;
use assay_platform::db::{Database, DatabaseError};
use assay_platform::runtime::{RandomnessUnavailable, new_id, now};

use crate::domain::{KeyName, OrganizationName};
use crate::store::{self, KeyOwner, KeyToStore, Store, StoreKeyOutcome};

#[derive(Debug, Clone)]
pub struct CreateKey {
    /// Created when it does not exist.
    pub organization: OrganizationName,
    pub name: KeyName,
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
}

/// A new key. It is shown once; only its hash is stored.
pub struct CreatedKey {
    pub id: ApiKeyId,
    pub key: ApiKey,
}

#[derive(Debug, thiserror::Error)]
pub enum CreateKeyError {
    #[error("the key would expire at {0}, which has passed: choose a later moment")]
    ExpiresInThePast(Timestamp),
    #[error("the generated key exists already: the randomness of this machine cannot be trusted")]
    Duplicate,
    #[error(transparent)]
    Randomness(#[from] RandomnessUnavailable),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Creates a key, and its organization when it does not exist.
///
/// # Errors
/// [`CreateKeyError`]; nothing is stored then.
pub async fn create(database: &Database, new: CreateKey) -> Result<CreatedKey, CreateKeyError> {
    let owner = KeyOwner::Named { name: new.organization, new_id: new_id() };
    create_for_owner(&store::open(database), owner, new.name, new.scopes, new.expires_at).await
}

/// Creates a key for `owner`. An organization given by its name is created when it does not exist.
///
/// # Errors
/// [`CreateKeyError`]; nothing is stored then.
pub async fn create_for_owner(
    store: &Store,
    owner: KeyOwner,
    name: KeyName,
    scopes: Scopes,
    expires_at: Option<Timestamp>,
) -> Result<CreatedKey, CreateKeyError> {
    let created_at = now();
    if let Some(expires_at) = expires_at.filter(|expires_at| *expires_at <= created_at) {
        return Err(CreateKeyError::ExpiresInThePast(expires_at));
    }
    let key = ApiKey::generate()?;
    let id = new_id();
    let record = KeyToStore { id, hash: key.hash(), owner, name, scopes, expires_at, created_at };
    match store.create_key(record).await? {
        StoreKeyOutcome::Created => Ok(CreatedKey { id, key }),
        StoreKeyOutcome::AlreadyExists => Err(CreateKeyError::Duplicate),
    }
}
