//! The `Idempotency-Key` header: a client that lost an answer sends its request again and gets the first answer,
//! not a second effect.
//!
//! The answer is stored in the same transaction as the effect, and *before* it: the primary key makes a concurrent
//! request with the same key wait until the first one has committed or rolled back. So of any number of equal
//! requests exactly one has an effect. Only successes are kept; a service whose effect is refused takes its record
//! back with `forget_…` in the same transaction, or rolls back.
//!
//! The table lives in the service's own schema: list [`MIGRATIONS`] among the service's migrations.

mod key;
mod postgres;
mod sqlite;

use assay_contracts::ids::OrganizationId;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::time::Timestamp;
use diesel::sql_types::{Nullable, SmallInt, Text};

pub use self::key::{Fingerprint, IdempotencyKey, InvalidIdempotencyKey};
pub use self::postgres::{find_postgres, forget_postgres, prune_postgres, store_postgres};
pub use self::sqlite::{find_sqlite, forget_sqlite, prune_sqlite, store_sqlite};
use super::{DatabaseError, Migrations, embed};

/// The header that carries the key.
pub const HEADER: &str = "Idempotency-Key";

/// How long an answer is given again, in milliseconds: 24 hours.
pub const RETENTION_MILLIS: i64 = 24 * 60 * 60 * 1_000;

/// At most so many records are removed by one call of `prune_…`, so that it never holds locks for long.
pub const PRUNE_BATCH: usize = 5_000;

/// The table `idempotency_keys`, for both databases.
pub const MIGRATIONS: Migrations = Migrations {
    postgres: embed!("src/db/idempotency/migrations/postgres"),
    sqlite: embed!("src/db/idempotency/migrations/sqlite"),
};

/// An answer as it was given, to be given again byte for byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// HTTP status code.
    pub status: u16,
    /// Value of the header `Location`.
    pub location: Option<String>,
    /// The JSON text.
    pub body: String,
}

/// A request with an idempotency key and the answer it will get if its effect takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The tenant: keys of different organizations have nothing to do with each other.
    pub organization_id: OrganizationId,
    /// The client's key.
    pub key: IdempotencyKey,
    /// What the request was.
    pub fingerprint: Fingerprint,
    /// What it is answered.
    pub answer: StoredAnswer,
}

/// What is known of an idempotency key that was used before, less than 24 hours ago.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Earlier {
    /// By the same request: this was its answer.
    SameRequest(StoredAnswer),
    /// By a request with another body.
    OtherRequest,
}

/// The answer to a request whose key belongs to another request: 422.
pub fn conflict() -> Problem {
    Problem::new(
        ProblemCode::IdempotencyConflict,
        "this Idempotency-Key was used with another body: send a new key with a new request",
    )
}

/// Records from this moment and before count no more.
fn expiry(now: Timestamp) -> i64 {
    now.as_millis() - RETENTION_MILLIS
}

/// A stored record, as both databases answer it.
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
    fn compared_with(self, fingerprint: &Fingerprint) -> Result<Earlier, DatabaseError> {
        if self.fingerprint != fingerprint.as_bytes() {
            return Ok(Earlier::OtherRequest);
        }
        let status = u16::try_from(self.status)
            .map_err(|_| DatabaseError::Corrupt(format!("idempotency record of status {}", self.status)))?;
        Ok(Earlier::SameRequest(StoredAnswer { status, location: self.location, body: self.body }))
    }
}

fn stored_status(answer: &StoredAnswer) -> Result<i16, DatabaseError> {
    i16::try_from(answer.status)
        .map_err(|_| DatabaseError::Corrupt(format!("answer of status {}", answer.status)))
}
