//! PostgreSQL URLs with a replaced database, user or server.

use anyhow::{Context as _, Result, bail};
use url::Url;

/// `postgres://user:password@host:port/database?options`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DatabaseUrl(Url);

impl DatabaseUrl {
    /// Parses an administrator's URL, which must name its host and database.
    ///
    /// The error does not repeat the URL, which holds a password.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let url =
            Url::parse(text).context("not a URL: expected postgres://USER:PASSWORD@HOST:PORT/DATABASE")?;
        if !matches!(url.scheme(), "postgres" | "postgresql") {
            bail!("expected a URL that starts with postgres://, found the scheme `{}`", url.scheme());
        }
        if !url.has_host() || url.path().len() < 2 {
            bail!("expected a host and a database in the URL: postgres://USER:PASSWORD@HOST:PORT/DATABASE");
        }
        Ok(Self(url))
    }

    /// The same server and user, another database.
    pub(crate) fn with_database(&self, database: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(database);
        Self(url)
    }

    /// The same server and database, another user.
    pub(crate) fn with_user(&self, user: &str, password: &str) -> Result<Self> {
        let mut url = self.0.clone();
        if url.set_username(user).is_err() || url.set_password(Some(password)).is_err() {
            bail!("cannot put the user {user} into the database URL");
        }
        Ok(Self(url))
    }

    /// The same user and database, on the host and port of `server`.
    pub(crate) fn on_server(&self, server: &Self) -> Result<Self> {
        let mut url = self.0.clone();
        if url.set_host(server.0.host_str()).is_err() || url.set_port(server.0.port()).is_err() {
            bail!("cannot put the server's address into the database URL");
        }
        Ok(Self(url))
    }

    /// The password as it stands in the URL (percent-encoded), empty when it has none.
    pub(crate) fn password(&self) -> &str {
        self.0.password().unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_and_user_can_be_replaced() {
        let url = DatabaseUrl::parse("postgres://root:secret@db.example:6000/main?sslmode=require").unwrap();
        let other = url.with_database("assay").with_user("assay_ingest", "word").unwrap();
        assert_eq!(other.as_str(), "postgres://assay_ingest:word@db.example:6000/assay?sslmode=require");
        let moved = other.on_server(&DatabaseUrl::parse("postgres://a:b@127.0.0.1:7000/c").unwrap()).unwrap();
        assert_eq!(moved.as_str(), "postgres://assay_ingest:word@127.0.0.1:7000/assay?sslmode=require");
    }

    #[test]
    fn invalid_url_is_refused_without_leaking_the_password() {
        for text in ["", "secret", "mysql://u:secret@h/d", "postgres://u:secret@h", "postgres:///d"] {
            let error = format!("{:#}", DatabaseUrl::parse(text).unwrap_err());
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
