//! Preparing the database server: the database, one database user and one schema per service.

use anyhow::{Context as _, Result};
use diesel::{RunQueryDsl as _, connection::SimpleConnection as _, sql_query, sql_types::Text};

use super::{secrets::Secrets, variables::Variables};
use crate::{
    database_url::DatabaseUrl,
    database_users::{self, ensure_schema, ensure_user, quote_name},
    launcher,
};

/// Creates a database unless it exists.
pub(super) fn ensure_database(administrator: &DatabaseUrl, name: &str) -> Result<()> {
    let mut connection = database_users::connect(administrator.as_str())?;
    let query = sql_query("SELECT 1 FROM pg_database WHERE datname = $1").bind::<Text, _>(name);
    if query.execute(&mut connection).context("cannot list the databases")? == 0 {
        connection
            .batch_execute(&format!("CREATE DATABASE {}", quote_name(name)))
            .with_context(|| format!("cannot create the database {name}"))?;
    }
    Ok(())
}

/// Gives every service its database user and schema in the database that `administrator` names, and sets the users' passwords.
pub(super) fn ensure_services(administrator: &DatabaseUrl, secrets: &Secrets) -> Result<()> {
    let mut connection = database_users::connect(administrator.as_str())?;
    for owner in launcher::owners() {
        ensure_user(&mut connection, owner.user, secrets.password_of(owner.user))?;
        ensure_schema(&mut connection, owner)?;
    }
    Ok(())
}

/// The database settings of every service.
pub(super) fn settings(administrator: &DatabaseUrl, secrets: &Secrets) -> Result<Variables> {
    let mut settings = Variables::new();
    for database in launcher::databases() {
        let user = database.owner.user;
        let url = administrator.with_user(user, secrets.password_of(user))?;
        settings.insert(database.setting.to_owned(), url.as_str().to_owned());
    }
    Ok(settings)
}
