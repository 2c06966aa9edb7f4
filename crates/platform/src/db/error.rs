//! What can go wrong with a database, as far as callers treat it differently.

use diesel::result::{DatabaseErrorKind, Error};

use crate::runtime::Interrupted;

/// A database call failed. The text is for the log, never for an answer.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// No connection: the database is down, unreachable or all connections are busy. Trying again later may help.
    #[error("database is unavailable: {0}")]
    Unavailable(String),
    /// The database refused a statement.
    #[error("database statement failed: {0}")]
    Statement(Error),
    /// A migration failed.
    #[error("migration failed: {0}")]
    Migration(String),
    /// What is stored cannot be understood.
    #[error("stored record cannot be read: {0}")]
    Corrupt(String),
    /// The work was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The address is neither PostgreSQL nor SQLite.
    #[error("the database_url of `{schema}` must begin with postgres:// or sqlite:")]
    UnknownScheme {
        /// The schema that the address was configured for.
        schema: &'static str,
    },
}

impl DatabaseError {
    /// Whether the same call may succeed later without anybody mending anything.
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
            // The second one is what a connection says that had died before it was used.
            Error::DatabaseError(
                DatabaseErrorKind::ClosedConnection | DatabaseErrorKind::UnableToSendCommand,
                information,
            ) => Self::Unavailable(information.message().to_owned()),
            // libpq and SQLite report these with a text only.
            Error::DatabaseError(DatabaseErrorKind::Unknown, information)
                if is_outage(information.message()) =>
            {
                Self::Unavailable(information.message().to_owned())
            }
            _ => Self::Statement(error),
        }
    }
}

fn is_outage(message: &str) -> bool {
    const OUTAGES: [&str; 11] = [
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
    OUTAGES.iter().any(|outage| message.contains(outage))
}
