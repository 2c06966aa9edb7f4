//! Rows of both databases: ids as text, times as milliseconds.

use std::str::FromStr;

use assay_contracts::event::AgentFacts;
use assay_contracts::ids::InvalidId;
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::tenant::Scopes;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Integer, Nullable, Text};

use crate::domain::{ActiveKey, KeyRecord, RetentionOverrides, RetentionRecord};

#[derive(QueryableByName)]
pub struct AgentRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Text)]
    name: String,
}

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

#[derive(QueryableByName)]
pub struct RevocationRow {
    #[diesel(sql_type = Nullable<BigInt>)]
    pub revoked_at: Option<i64>,
}

#[derive(QueryableByName)]
pub struct RetentionRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<Integer>)]
    transcripts_days: Option<i32>,
    #[diesel(sql_type = Nullable<Integer>)]
    evaluations_days: Option<i32>,
    #[diesel(sql_type = Nullable<Integer>)]
    files_days: Option<i32>,
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

impl RetentionRow {
    pub fn into_record(self) -> Result<RetentionRecord, DatabaseError> {
        let overrides = RetentionOverrides {
            transcripts: parse_period(self.transcripts_days)?,
            evaluations: parse_period(self.evaluations_days)?,
            files: parse_period(self.files_days)?,
        };
        Ok(RetentionRecord { organization_id: parse_id(&self.id)?, organization: self.name, overrides })
    }

    /// The columns of transcripts, evaluations and files.
    pub fn days(overrides: RetentionOverrides) -> [Option<i32>; 3] {
        let days = |period: Option<RetentionPeriod>| {
            period.map(|period| i32::try_from(period.stored_days()).unwrap_or(i32::MAX))
        };
        [days(overrides.transcripts), days(overrides.evaluations), days(overrides.files)]
    }
}

fn parse_period(days: Option<i32>) -> Result<Option<RetentionPeriod>, DatabaseError> {
    let corrupt = || DatabaseError::Corrupt(format!("retention period of {days:?} days"));
    let period = days
        .map(|days| u32::try_from(days).ok().and_then(|days| RetentionPeriod::from_stored_days(days).ok()));
    period.map(|period| period.ok_or_else(corrupt)).transpose()
}

fn parse_id<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, DatabaseError> {
    text.parse().map_err(|_| DatabaseError::Corrupt(format!("id `{text}` is no UUID")))
}

fn parse_scopes(text: &str) -> Result<Scopes, DatabaseError> {
    text.parse().map_err(|error| DatabaseError::Corrupt(format!("scopes of a key: {error}")))
}
