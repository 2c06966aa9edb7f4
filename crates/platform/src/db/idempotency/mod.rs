//! The `Idempotency-Key` header: a client that lost a response repeats its request and gets the recorded response, without
//! a second effect.
//!
//! The response is recorded in the same transaction as the effect, and *before* it: the primary key makes a concurrent
//! request with the same key wait until the first one has committed or rolled back. So exactly one of any number of equal
//! requests has an effect. Only successes are kept; a service that refuses the effect deletes the record with
//! [`Connection::delete_keys`] in the same transaction, or rolls back.
//!
//! The table lives in the service's own schema: list [`MIGRATIONS`] among the service's migrations.

mod key;
#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;

use assay_contracts::ids::OrganizationId;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::time::Timestamp;
use diesel::sql_types::{Nullable, SmallInt, Text};
use serde::Serialize;

pub use self::key::{Fingerprint, IdempotencyKey, InvalidIdempotencyKey};
use super::{DatabaseError, Migrations, embed};

/// Name of the header.
pub const HEADER: &str = "Idempotency-Key";

/// How long a response is replayed, in milliseconds: 24 hours.
pub const RETENTION_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// Maximum number of records that one call of [`Connection::prune_recorded_responses`] removes, so that it holds locks only
/// briefly.
pub const PRUNE_BATCH: usize = 5_000;

/// The table `idempotency_keys`, for both databases.
pub const MIGRATIONS: Migrations = Migrations {
    postgres: embed!("src/db/idempotency/migrations/postgres"),
    sqlite: embed!("src/db/idempotency/migrations/sqlite"),
};

/// A response as it was sent, replayed byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedResponse {
    /// HTTP status code.
    pub status: u16,
    /// Value of the header `Location`.
    pub location: Option<String>,
    /// JSON body.
    pub body: String,
}

impl RecordedResponse {
    /// 201 with what was created, and its address.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn created(location: String, body: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { status: 201, location: Some(location), body: serde_json::to_string(body)? })
    }
}

/// A request with an idempotency key, and its response once the effect is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Keys are unique per organization.
    pub organization_id: OrganizationId,
    /// The key of the request.
    pub key: IdempotencyKey,
    /// Hash of the request body.
    pub fingerprint: Fingerprint,
    /// Replayed to a repeated request.
    pub response: RecordedResponse,
}

impl Record {
    /// The record of a request with this key and fingerprint of its body; `None` without a key.
    pub fn of(
        organization_id: OrganizationId,
        idempotency: Option<(IdempotencyKey, Fingerprint)>,
        response: &RecordedResponse,
    ) -> Option<Self> {
        let (key, fingerprint) = idempotency?;
        Some(Self { organization_id, key, fingerprint, response: response.clone() })
    }
}

/// Previous use of an idempotency key, less than 24 hours ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyReuse {
    /// The same body: send the recorded response again.
    Replay(RecordedResponse),
    /// A different body: refuse with 422, see [`conflict`].
    Conflict,
}

/// A connection to either database, so that the statements of a service can be written once for both.
pub trait Connection {
    /// Looks up an earlier use of a key.
    ///
    /// # Errors
    /// When the database refuses.
    fn find_key(
        &mut self,
        organization_id: OrganizationId,
        key: &IdempotencyKey,
        fingerprint: &Fingerprint,
        now: Timestamp,
    ) -> Result<Option<KeyReuse>, DatabaseError>;

    /// Claims the keys of `records`, which must all be different (by organization and key), and stores their responses.
    /// Returns for each record, in the same order: `None` when it is now stored, else the earlier use of its key.
    /// Waits for concurrent transactions that claim the same keys. Keys are claimed in sorted order, so such transactions
    /// cannot deadlock as long as each calls this once.
    ///
    /// # Errors
    /// When the database refuses.
    fn store_keys(
        &mut self,
        records: &[Record],
        now: Timestamp,
    ) -> Result<Vec<Option<KeyReuse>>, DatabaseError>;

    /// Deletes records stored in this transaction, for requests whose effect was refused.
    ///
    /// # Errors
    /// When the database refuses.
    fn delete_keys(&mut self, keys: &[(OrganizationId, &IdempotencyKey)]) -> Result<(), DatabaseError>;

    /// Deletes up to [`PRUNE_BATCH`] expired records, oldest first; returns their number.
    ///
    /// # Errors
    /// When the database refuses.
    fn prune_recorded_responses(&mut self, now: Timestamp) -> Result<usize, DatabaseError>;
}

/// 422: the key was used with another body.
pub fn conflict() -> Problem {
    Problem::new(
        ProblemCode::IdempotencyConflict,
        "this Idempotency-Key was used with another body: send a new key with a new request",
    )
}

/// Records created at or before this time, in epoch milliseconds, have expired.
fn expiry_cutoff(now: Timestamp) -> i64 {
    now.as_millis() - RETENTION_MILLIS
}

/// Row of a record, the same in both databases.
#[derive(diesel::QueryableByName)]
struct StoredRow {
    #[diesel(sql_type = diesel::sql_types::Binary)]
    fingerprint: Vec<u8>,
    #[diesel(sql_type = SmallInt)]
    status: i16,
    #[diesel(sql_type = Nullable<Text>)]
    location: Option<String>,
    #[diesel(sql_type = Text)]
    body: String,
}

impl StoredRow {
    fn into_key_reuse(self, fingerprint: &Fingerprint) -> Result<KeyReuse, DatabaseError> {
        if self.fingerprint != fingerprint.as_bytes() {
            return Ok(KeyReuse::Conflict);
        }
        let status = u16::try_from(self.status)
            .map_err(|_| DatabaseError::Corrupt(format!("idempotency record of status {}", self.status)))?;
        Ok(KeyReuse::Replay(RecordedResponse { status, location: self.location, body: self.body }))
    }
}

fn stored_status(response: &RecordedResponse) -> Result<i16, DatabaseError> {
    i16::try_from(response.status)
        .map_err(|_| DatabaseError::Corrupt(format!("response of status {}", response.status)))
}
