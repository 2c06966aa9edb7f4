//! API keys, and the organizations that are created with them.

use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_platform::auth::ApiKeyHash;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::dsl::exists;
use diesel::prelude::*;

use super::Connection;
use super::schema::{api_keys, organizations};
use crate::domain::{ActiveKey, KeyRecord, OrganizationName, Revocation, USE_RECORD_INTERVAL_MILLIS};
use crate::store::{KeyOwner, KeyToStore, MAX_LISTED_KEYS, StoreKeyOutcome};

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct ActiveKeyRow {
    id: StoredId,
    organization_id: StoredId,
    scopes: String,
    last_used_at: Option<i64>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct KeyRow {
    id: StoredId,
    #[diesel(select_expression = organizations::name)]
    organization: String,
    name: String,
    scopes: String,
    created_at: i64,
    last_used_at: Option<i64>,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
}

pub fn find_active(
    connection: &mut Connection,
    hash: &ApiKeyHash,
    now: Timestamp,
) -> Result<Option<ActiveKey>, DatabaseError> {
    let is_unexpired = api_keys::expires_at.is_null().or(api_keys::expires_at.gt(now.as_millis()));
    let row: Option<ActiveKeyRow> = api_keys::table
        .filter(api_keys::key_sha256.eq(hash.as_bytes().as_slice()))
        .filter(api_keys::revoked_at.is_null().and(is_unexpired))
        .select(ActiveKeyRow::as_select())
        .first(connection)
        .optional()?;
    row.map(ActiveKeyRow::into_key).transpose()
}

pub fn record_use(connection: &mut Connection, id: ApiKeyId, now: Timestamp) -> Result<(), DatabaseError> {
    let interval_ago = now.as_millis() - USE_RECORD_INTERVAL_MILLIS;
    diesel::update(api_keys::table.find(StoredId::of(id)))
        .filter(api_keys::last_used_at.is_null().or(api_keys::last_used_at.le(interval_ago)))
        .set(api_keys::last_used_at.eq(now.as_millis()))
        .execute(connection)?;
    Ok(())
}

/// Call inside a write transaction.
pub fn create(connection: &mut Connection, new: &KeyToStore) -> Result<StoreKeyOutcome, DatabaseError> {
    let hash = new.hash.as_bytes().as_slice();
    let same_key = api_keys::table.filter(api_keys::key_sha256.eq(hash));
    if diesel::select(exists(same_key)).get_result(connection)? {
        return Ok(StoreKeyOutcome::AlreadyExists);
    }
    let organization_id = find_or_create_owner(connection, new)?;
    let inserted = diesel::insert_into(api_keys::table)
        .values((
            api_keys::id.eq(StoredId::of(new.id)),
            api_keys::organization_id.eq(organization_id),
            api_keys::key_sha256.eq(hash),
            api_keys::name.eq(new.name.as_str()),
            api_keys::scopes.eq(new.scopes.to_string()),
            api_keys::created_at.eq(new.created_at.as_millis()),
            api_keys::expires_at.eq(new.expires_at.map(Timestamp::as_millis)),
        ))
        .on_conflict(api_keys::key_sha256)
        .do_nothing()
        .execute(connection)?;
    // Another process may have stored the same key since the look-up.
    Ok(if inserted == 0 { StoreKeyOutcome::AlreadyExists } else { StoreKeyOutcome::Created })
}

/// The id of the key's organization, which is created if it is named and does not exist.
fn find_or_create_owner(connection: &mut Connection, new: &KeyToStore) -> Result<StoredId, DatabaseError> {
    let (name, new_id) = match &new.owner {
        KeyOwner::Existing(id) => return Ok(StoredId::of(*id)),
        KeyOwner::Named { name, new_id } => (name.as_str(), *new_id),
    };
    diesel::insert_into(organizations::table)
        .values((
            organizations::id.eq(StoredId::of(new_id)),
            organizations::name.eq(name),
            organizations::created_at.eq(new.created_at.as_millis()),
        ))
        .on_conflict(organizations::name)
        .do_nothing()
        .execute(connection)?;
    let named = organizations::table.filter(organizations::name.eq(name));
    Ok(named.select(organizations::id).first(connection)?)
}

pub fn list(
    connection: &mut Connection,
    organization: Option<&OrganizationName>,
) -> Result<Vec<KeyRecord>, DatabaseError> {
    let mut keys = api_keys::table.inner_join(organizations::table).into_boxed();
    if let Some(name) = organization {
        keys = keys.filter(organizations::name.eq(name.as_str()));
    }
    let newest = keys.order(api_keys::id.desc()).limit(MAX_LISTED_KEYS);
    let rows: Vec<KeyRow> = newest.select(KeyRow::as_select()).load(connection)?;
    rows.into_iter().map(KeyRow::into_record).collect()
}

pub fn list_in_organization(
    connection: &mut Connection,
    organization_id: OrganizationId,
    before: Option<ApiKeyId>,
) -> Result<Vec<KeyRecord>, DatabaseError> {
    let mut keys = api_keys::table
        .inner_join(organizations::table)
        .filter(api_keys::organization_id.eq(StoredId::of(organization_id)))
        .into_boxed();
    if let Some(before) = before {
        keys = keys.filter(api_keys::id.lt(StoredId::of(before)));
    }
    let newest = keys.order(api_keys::id.desc()).limit(MAX_LISTED_KEYS);
    let rows: Vec<KeyRow> = newest.select(KeyRow::as_select()).load(connection)?;
    rows.into_iter().map(KeyRow::into_record).collect()
}

/// Call inside a write transaction.
pub fn revoke(
    connection: &mut Connection,
    id: ApiKeyId,
    owner: Option<OrganizationId>,
    now: Timestamp,
) -> Result<Revocation, DatabaseError> {
    let key = api_keys::table.find(StoredId::of(id));
    let key_owner: Option<StoredId> = key.select(api_keys::organization_id).first(connection).optional()?;
    if key_owner.is_none() || owner.is_some_and(|owner| key_owner != Some(StoredId::of(owner))) {
        return Ok(Revocation::Unknown);
    }
    let revoked = diesel::update(key)
        .filter(api_keys::revoked_at.is_null())
        .set(api_keys::revoked_at.eq(now.as_millis()))
        .execute(connection)?;
    if revoked > 0 {
        return Ok(Revocation::Revoked);
    }
    let revoked_at: Option<Option<i64>> = key.select(api_keys::revoked_at).first(connection).optional()?;
    let revoked_at = revoked_at.flatten().map(Timestamp::saturating_from_millis);
    Ok(revoked_at.map_or(Revocation::Unknown, Revocation::AlreadyRevoked))
}

impl ActiveKeyRow {
    fn into_key(self) -> Result<ActiveKey, DatabaseError> {
        Ok(ActiveKey {
            id: self.id.0.into(),
            organization_id: self.organization_id.0.into(),
            scopes: parse_scopes(&self.scopes)?,
            last_used_at: self.last_used_at.map(Timestamp::saturating_from_millis),
        })
    }
}

impl KeyRow {
    fn into_record(self) -> Result<KeyRecord, DatabaseError> {
        Ok(KeyRecord {
            id: self.id.0.into(),
            scopes: parse_scopes(&self.scopes)?,
            organization: self.organization,
            name: self.name,
            created_at: Timestamp::saturating_from_millis(self.created_at),
            last_used_at: self.last_used_at.map(Timestamp::saturating_from_millis),
            expires_at: self.expires_at.map(Timestamp::saturating_from_millis),
            revoked_at: self.revoked_at.map(Timestamp::saturating_from_millis),
        })
    }
}

fn parse_scopes(text: &str) -> Result<Scopes, DatabaseError> {
    text.parse().map_err(|error| DatabaseError::Corrupt(format!("scopes of a key: {error}")))
}
