//! The log of failed attempts to connect. The pool tries twice a second: a cause is logged once, and again only after
//! another cause or a connection.

use std::sync::{Arc, Mutex};

use diesel::r2d2::event::AcquireEvent;
use diesel::r2d2::{Error, HandleError, HandleEvent};

use crate::runtime::LockExt as _;

/// Logs for one pool. Clones share state.
#[derive(Clone, Debug)]
pub(super) struct ConnectionLog {
    schema: &'static str,
    password: Password,
    /// Cause of the last failed attempt; `None` after a connection.
    last_cause: Arc<Mutex<Option<String>>>,
}

impl ConnectionLog {
    pub(super) fn new(url: &str, schema: &'static str) -> Self {
        Self { schema, password: Password::of(url), last_cause: Arc::default() }
    }

    /// The text of an error of the pool, without the password.
    pub(super) fn text(&self, error: &impl ToString) -> String {
        self.password.remove_from(&error.to_string())
    }

    /// Stores the outcome of an attempt; returns that of the attempt before.
    fn replace_cause(&self, cause: Option<String>) -> Option<String> {
        std::mem::replace(&mut *self.last_cause.locked(), cause)
    }
}

impl HandleError<Error> for ConnectionLog {
    fn handle_error(&self, error: Error) {
        let cause = self.text(&error);
        if self.replace_cause(Some(cause.clone())).as_ref() != Some(&cause) {
            tracing::error!(schema = self.schema, cause, "cannot connect to the database: trying again");
        } else {
            tracing::debug!(schema = self.schema, "still no connection to the database");
        }
    }
}

impl HandleEvent for ConnectionLog {
    fn handle_acquire(&self, _: AcquireEvent) {
        if self.replace_cause(None).is_some() {
            tracing::info!(schema = self.schema, "connected to the database again");
        }
    }
}

/// The password of an address, as it is written there. libpq quotes parts of an address that it cannot parse.
#[derive(Clone)]
struct Password(Option<String>);

impl Password {
    fn of(url: &str) -> Self {
        let user_and_host = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
        let user_and_password = user_and_host.and_then(|(user, _)| user.split_once(':'));
        let password = user_and_password.map(|(_, password)| password.to_owned());
        Self(password.filter(|password| !password.is_empty()))
    }

    fn remove_from(&self, text: &str) -> String {
        match &self.0 {
            // Errors of a server or of the network never have the password, but may have a name that is the same word.
            Some(password) if !text.contains("connection to server at ") => text.replace(password, "***"),
            _ => text.to_owned(),
        }
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Password(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_removed_from_addresses_that_libpq_quotes() {
        let log = ConnectionLog::new("postgres://assay_ingest:sec%ret@db:5432/assay", "ingest");
        assert_eq!(
            log.text(&"invalid percent-encoded token: \"sec%ret\""),
            "invalid percent-encoded token: \"***\""
        );
        let whole = "missing \"]\" in URI: \"postgres://assay_ingest:sec%ret@[db/assay\"";
        assert!(!log.text(&whole).contains("sec%ret"));
    }

    #[test]
    fn name_equal_to_the_password_is_kept() {
        let log = ConnectionLog::new("postgres://assay:assay@db/assay", "ingest");
        let refused = "connection to server at \"db\" (10.0.0.1), port 5432 failed: FATAL: database \"assay\" does not exist";
        assert_eq!(log.text(&refused), refused);
    }

    #[test]
    fn cause_is_new_after_another_cause_or_a_connection() {
        let log = ConnectionLog::new("postgres://db/assay", "ingest");
        let mut is_new = Vec::new();
        for cause in [Some("refused"), Some("refused"), Some("certificate"), None, Some("certificate")] {
            let cause = cause.map(str::to_owned);
            is_new.push(log.replace_cause(cause.clone()) != cause);
        }
        assert_eq!(is_new, [true, false, true, true, true]);
    }
}
