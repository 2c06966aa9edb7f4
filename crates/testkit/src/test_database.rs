//! A fresh database per test, cloned from a template that is migrated once per server.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::Write as _,
};

use anyhow::{Context as _, Result};
use diesel::{PgConnection, RunQueryDsl as _, connection::SimpleConnection as _, sql_query, sql_types::Text};

use crate::{
    database_url::DatabaseUrl,
    database_users::{self, SchemaOwner, database_exists, quote_name},
    random::hex_secret,
    services,
};

/// Characters of a template's name in the name of its database, which then stays below the 63 bytes at which PostgreSQL truncates.
const READABLE_CHARACTERS: usize = 24;

/// The database that test databases are cloned from.
#[derive(Clone, Debug)]
pub struct Template {
    name: String,
    fingerprint: String,
    services: Vec<SchemaOwner>,
}

impl Template {
    /// `fingerprint` must change with the tables, for example the joined names of the migrations: each fingerprint has
    /// its own template.
    pub fn new(name: impl Into<String>, fingerprint: impl Into<String>) -> Self {
        Self { name: name.into(), fingerprint: fingerprint.into(), services: Vec::new() }
    }

    /// Adds a database user with its schema to the template. The migration and the tests connect as this user; with several
    /// users, as the first one, and as the others by [`TestDatabase::url_as`].
    #[must_use]
    pub fn owned_by(mut self, service: SchemaOwner) -> Self {
        self.services.push(service);
        self
    }

    fn database_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.name, &self.fingerprint).hash(&mut hasher);
        for service in &self.services {
            (service.user, service.schema).hash(&mut hasher);
        }
        let readable: String =
            self.name.chars().filter(char::is_ascii_alphanumeric).take(READABLE_CHARACTERS).collect();
        format!("template_{}_{:016x}", readable.to_lowercase(), hasher.finish())
    }
}

/// A database of one test. Dropping it drops the database, even with open connections.
#[derive(Debug)]
pub struct TestDatabase {
    server: DatabaseUrl,
    name: String,
    url: DatabaseUrl,
}

impl TestDatabase {
    /// Clones a database from the template on the server of [`services::postgres`].
    ///
    /// The first caller on a server creates the template: an empty database that `migrate` fills. `migrate` gets the
    /// same kind of URL that [`TestDatabase::url`] returns, and must leave no connection open. When it fails the
    /// template is not kept.
    ///
    /// # Errors
    /// When there is no server, when `migrate` fails, or when PostgreSQL refuses.
    pub fn create(template: &Template, migrate: impl FnOnce(&str) -> Result<()>) -> Result<Self> {
        Self::create_on(services::postgres()?, template, migrate)
    }

    /// The same on the server behind an administrator's URL.
    ///
    /// # Errors
    /// See [`TestDatabase::create`].
    pub fn create_on(
        administrator_url: &str,
        template: &Template,
        migrate: impl FnOnce(&str) -> Result<()>,
    ) -> Result<Self> {
        let server = DatabaseUrl::parse(administrator_url)?;
        let mut administrator = database_users::connect(server.as_str())?;
        let source = template.database_name();
        if !database_exists(&mut administrator, &source)? {
            create_template(&server, &mut administrator, template, &source, migrate)
                .with_context(|| format!("cannot create the template database of {}", template.name))?;
        }
        let name = format!("test_{}", hex_secret(8)?);
        administrator
            .batch_execute(&format!("CREATE DATABASE {} TEMPLATE {}", quote_name(&name), quote_name(&source)))
            .with_context(|| format!("cannot clone a database from {source}"))?;
        let url = user_url(&server, template, &name)?;
        Ok(Self { server, name, url })
    }

    /// Updates the address after the server was restarted on another port.
    ///
    /// # Errors
    /// When the URL is invalid.
    pub fn server_moved_to(&mut self, administrator_url: &str) -> Result<()> {
        self.server = DatabaseUrl::parse(administrator_url)?;
        self.url = self.url.on_server(&self.server)?;
        Ok(())
    }

    /// The URL for the code under test: that of the template's database user, or the administrator's when it has none.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The URL for the code under test as one of the template's database users.
    ///
    /// # Errors
    /// When the user's name cannot be part of a URL.
    pub fn url_as(&self, service: SchemaOwner) -> Result<String> {
        let url =
            self.server.with_database(&self.name).with_user(service.user, &user_password(&self.server))?;
        Ok(url.as_str().to_owned())
    }

    /// The administrator's URL of this database.
    pub fn admin_url(&self) -> String {
        self.server.with_database(&self.name).as_str().to_owned()
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let drop_it = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quote_name(&self.name));
        let outcome = database_users::connect(self.server.as_str())
            .and_then(|mut administrator| Ok(administrator.batch_execute(&drop_it)?));
        if let Err(error) = outcome {
            // Best effort; `Drop` cannot return an error.
            let _ = writeln!(std::io::stderr(), "test database {} stays behind: {error:#}", self.name);
        }
    }
}

/// Builds the template under a temporary name and renames it, so a template is complete or absent.
fn create_template(
    server: &DatabaseUrl,
    administrator: &mut PgConnection,
    template: &Template,
    name: &str,
    migrate: impl FnOnce(&str) -> Result<()>,
) -> Result<()> {
    // Held until `administrator` disconnects.
    sql_query("SELECT pg_advisory_lock(hashtextextended($1, 0))")
        .bind::<Text, _>(name)
        .execute(administrator)?;
    if database_exists(administrator, name)? {
        return Ok(());
    }
    let unfinished = format!("{name}_new");
    let (unfinished_name, final_name) = (quote_name(&unfinished), quote_name(name));
    administrator.batch_execute(&format!("DROP DATABASE IF EXISTS {unfinished_name} WITH (FORCE)"))?;
    administrator.batch_execute(&format!("CREATE DATABASE {unfinished_name} TEMPLATE template0"))?;
    for service in &template.services {
        database_users::ensure_user(administrator, service.user, &user_password(server))?;
        database_users::ensure_schema(
            &mut database_users::connect(server.with_database(&unfinished).as_str())?,
            *service,
        )?;
    }
    migrate(user_url(server, template, &unfinished)?.as_str()).context("the migration failed")?;
    administrator.batch_execute(&format!("ALTER DATABASE {unfinished_name} RENAME TO {final_name}"))?;
    Ok(())
}

fn user_url(server: &DatabaseUrl, template: &Template, database: &str) -> Result<DatabaseUrl> {
    let url = server.with_database(database);
    match template.services.first() {
        Some(service) => url.with_user(service.user, &user_password(server)),
        None => Ok(url),
    }
}

/// The password of the database users: derived from the administrator's, so that every test process knows it; in hexadecimal, so
/// that it needs no escaping in a URL.
fn user_password(server: &DatabaseUrl) -> String {
    let mut hasher = DefaultHasher::new();
    ("role of a test database", server.password()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
