//! Rows as both databases answer them: ids as text, times as milliseconds.

use std::str::FromStr;

use assay_contracts::event::AgentFacts;
use assay_contracts::ids::InvalidId;
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Nullable, Text};

use crate::domain::{ActiveKey, KeyRecord};

/// An agent as other services know it.
#[derive(QueryableByName)]
pub struct AgentRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Text)]
    name: String,
}

/// A key that may be used.
#[derive(QueryableByName)]
pub struct ActiveKeyRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    organization_id: String,
    #[diesel(sql_type = Text)]
    scopes: String,
    #[diesel(sql_type = Nullable<BigInt>)]
    last_used_at: Option<i64>,
}

/// Everything that is known of a key.
#[derive(QueryableByName)]
pub struct KeyRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    organization: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    scopes: String,
    #[diesel(sql_type = BigInt)]
    created_at: i64,
    #[diesel(sql_type = Nullable<BigInt>)]
    last_used_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    expires_at: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    revoked_at: Option<i64>,
}

/// When a key was revoked.
#[derive(QueryableByName)]
pub struct RevocationRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    pub revoked_at: Option<i64>,
}

impl AgentRow {
    pub fn into_facts(self) -> Result<AgentFacts, DatabaseError> {
        Ok(AgentFacts { id: parse_id(&self.id)?, external_id: self.external_id, name: self.name })
    }
}

impl ActiveKeyRow {
    pub fn into_key(self) -> Result<ActiveKey, DatabaseError> {
        Ok(ActiveKey {
            id: parse_id(&self.id)?,
            organization_id: parse_id(&self.organization_id)?,
            scopes: parse_scopes(&self.scopes)?,
            last_used_at: self.last_used_at.map(Timestamp::saturating_from_millis),
        })
    }
}

impl KeyRow {
    pub fn into_record(self) -> Result<KeyRecord, DatabaseError> {
        Ok(KeyRecord {
            id: parse_id(&self.id)?,
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

fn parse_id<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, DatabaseError> {
    text.parse().map_err(|_| DatabaseError::Corrupt(format!("id `{text}` is no UUID")))
}

fn parse_scopes(text: &str) -> Result<Scopes, DatabaseError> {
    text.parse().map_err(|error| DatabaseError::Corrupt(format!("scopes of a key: {error}")))
}
