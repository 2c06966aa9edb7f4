//! Database users (in PostgreSQL: login roles): one user and one schema per service, in the stack and in test databases.

use crate::database_url::DatabaseUrl;
use anyhow::{Context as _, Result};
use diesel::{
    Connection as _, PgConnection, RunQueryDsl as _, connection::SimpleConnection as _, sql_query,
    sql_types::Text,
};

/// A service's database user and the schema that the user owns, for example `assay_ingest` and `ingest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaOwner {
    /// The database user.
    pub user: &'static str,
    /// The schema that the user owns, the only one it may use.
    pub schema: &'static str,
}

/// Creates the database on the administrator's server, with a database user and a schema for each service. All users get this
/// password.
///
/// # Errors
/// When the server cannot be reached or refuses, or has a database of this name.
pub fn provision_services(
    administrator_url: &str,
    database: &str,
    password: &str,
    services: &[SchemaOwner],
) -> Result<()> {
    let administrator = DatabaseUrl::parse(administrator_url)?;
    create_database(&mut connect(administrator.as_str())?, database)?;
    ensure_services(&administrator.with_database(database), services, |_user| password)
}

/// Creates a database unless it exists.
pub(crate) fn ensure_database(administrator: &DatabaseUrl, name: &str) -> Result<()> {
    let mut connection = connect(administrator.as_str())?;
    if !database_exists(&mut connection, name)? {
        create_database(&mut connection, name)?;
    }
    Ok(())
}

fn create_database(connection: &mut PgConnection, name: &str) -> Result<()> {
    let statement = format!("CREATE DATABASE {}", quote_name(name));
    connection.batch_execute(&statement).with_context(|| format!("cannot create the database {name}"))
}

pub(crate) fn database_exists(administrator: &mut PgConnection, name: &str) -> Result<bool> {
    let query = sql_query("SELECT 1 FROM pg_database WHERE datname = $1").bind::<Text, _>(name);
    Ok(query.execute(administrator).context("cannot list the databases")? > 0)
}

/// Gives every service its database user and schema in the database that `administrator` names, with these passwords.
pub(crate) fn ensure_services<'p>(
    administrator: &DatabaseUrl,
    services: &[SchemaOwner],
    password_of: impl Fn(&str) -> &'p str,
) -> Result<()> {
    let mut connection = connect(administrator.as_str())?;
    for service in services {
        ensure_user(&mut connection, service.user, password_of(service.user))?;
        ensure_schema(&mut connection, *service)?;
    }
    Ok(())
}

/// Connects as an administrator. The error does not repeat the URL, which holds a password.
pub(crate) fn connect(url: &str) -> Result<PgConnection> {
    PgConnection::establish(url).context("cannot connect to PostgreSQL as its administrator")
}

/// Creates the database user, or sets the password of the existing one.
pub(crate) fn ensure_user(administrator: &mut PgConnection, user: &str, password: &str) -> Result<()> {
    let (name, password) = (quote_name(user), quote_text(password));
    administrator
        .transaction(|connection| {
            // Users are global to the server: serialise concurrent creation.
            connection.batch_execute("SELECT pg_advisory_xact_lock(hashtextextended('assay roles', 0))")?;
            let found = sql_query("SELECT 1 FROM pg_roles WHERE rolname = $1")
                .bind::<Text, _>(user)
                .execute(connection)?;
            let verb = if found == 0 { "CREATE" } else { "ALTER" };
            connection.batch_execute(&format!("{verb} ROLE {name} LOGIN PASSWORD {password}"))?;
            // An administrator without superuser rights can give a schema only to a user (a role) of which it is a member.
            connection.batch_execute(&format!("GRANT {name} TO CURRENT_USER"))
        })
        .with_context(|| format!("cannot create the database user {user}"))
}

/// Creates the user's schema and revokes all rights of PUBLIC on the schema `public`.
pub(crate) fn ensure_schema(administrator: &mut PgConnection, service: SchemaOwner) -> Result<()> {
    let (user, schema) = (quote_name(service.user), quote_name(service.schema));
    administrator
        .batch_execute(&format!(
            "REVOKE ALL ON SCHEMA public FROM PUBLIC;
             CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {user};
             ALTER SCHEMA {schema} OWNER TO {user};"
        ))
        .with_context(|| {
            format!("cannot create the schema {} of the database user {}", service.schema, service.user)
        })
}

/// An identifier for SQL.
pub(crate) fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text literal for SQL. Backslashes are ordinary characters (`standard_conforming_strings`, the default).
fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(quote_name("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote_text("a'b"), "'a''b'");
    }
}
