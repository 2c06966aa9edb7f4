//! Database errors, as far as callers treat them differently.

use diesel::result::{DatabaseErrorKind, Error};

use super::clock_skew::ClockSkew;
use crate::runtime::Interrupted;

/// A database call failed. The text is for the log, never for a response.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database is down, unreachable or too busy, or refused for a cause that passes, such as a deadlock or a full
    /// disk. A retry may succeed.
    #[error("database is unavailable: {0}")]
    Unavailable(String),
    /// The database refused a statement.
    #[error("database statement failed: {0}")]
    Statement(Error),
    /// A migration failed.
    #[error("migration failed: {0}")]
    Migration(String),
    /// The schema has migrations of a version before the first release.
    #[error(
        "the schema `{schema}` has migration {version} of a version of Assay before 0.1.0, which this one cannot read: \
         export what you need with that version, then start with an empty database (standalone: data folder)"
    )]
    BeforeFirstRelease {
        /// Schema, or service of a SQLite file.
        schema: &'static str,
        /// The oldest of these migrations.
        version: String,
    },
    /// A stored value cannot be decoded.
    #[error("stored record cannot be read: {0}")]
    Corrupt(String),
    /// The clocks of this process and the database differ too much for work that depends on stored times.
    #[error(transparent)]
    Clock(#[from] ClockSkew),
    /// The blocking task panicked or the runtime is shutting down.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The address is PostgreSQL's, which this build does not have.
    #[cfg(not(feature = "distributed"))]
    #[error("the database_url of `{schema}` is PostgreSQL's, {}", crate::NOT_IN_THIS_BUILD)]
    NoPostgres {
        /// The schema that the address was configured for.
        schema: &'static str,
    },
    /// The address demands TLS, which this build does not have.
    #[error(
        "the database_url of `{schema}` demands TLS ({demand}), which this build of Assay does not have: use the image, or \
         build with `--features postgres-tls`"
    )]
    NoTls {
        /// The schema that the address was configured for.
        schema: &'static str,
        /// The parameter of the address.
        demand: &'static str,
    },
    /// The address is neither PostgreSQL nor SQLite.
    #[error("the database_url of `{schema}` must begin with postgres:// or sqlite:")]
    UnknownScheme {
        /// The schema that the address was configured for.
        schema: &'static str,
    },
}

impl DatabaseError {
    /// Whether a retry may succeed without a repair.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Interrupted(_) => true,
            Self::Statement(Error::DatabaseError(kind, _)) => {
                matches!(
                    kind,
                    DatabaseErrorKind::ClosedConnection
                        | DatabaseErrorKind::SerializationFailure
                        | DatabaseErrorKind::ReadOnlyTransaction
                )
            }
            Self::Statement(Error::BrokenTransactionManager) => true,
            _ => false,
        }
    }
}

impl From<Error> for DatabaseError {
    fn from(error: Error) -> Self {
        match &error {
            // `UnableToSendCommand` is reported by a connection that broke while idle.
            Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                information,
            ) => Self::Unavailable(information.message().to_owned()),
            // libpq and SQLite report these by message text only.
            Error::DatabaseError(DatabaseErrorKind::Unknown, information)
                if is_transient_message(information.message()) =>
            {
                Self::Unavailable(information.message().to_owned())
            }
            _ => Self::Statement(error),
        }
    }
}

fn is_transient_message(message: &str) -> bool {
    const TRANSIENT: [&str; 11] = [
        "server closed the connection",
        "terminating connection",
        "the database system is",
        "connection to server",
        "could not receive data",
        "could not send data",
        "canceling statement due to",
        "deadlock detected",
        "database is locked",
        "disk is full",
        "No space left on device",
    ];
    TRANSIENT.iter().any(|part| message.contains(part))
}
