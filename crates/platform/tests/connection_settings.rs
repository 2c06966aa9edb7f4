//! Settings of the database connections that services use.

use anyhow::{Context, Result};
use assay_platform::db::{Database, DatabaseError, Migrations};
use assay_testkit::ServiceDatabase;
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query};

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";
static NO_MIGRATIONS: [Migrations; 0] = [];

#[derive(QueryableByName)]
struct Setting {
    #[diesel(sql_type = diesel::sql_types::Text)]
    value: String,
}

fn synchronous_commit(connection: &mut PgConnection) -> Result<String, DatabaseError> {
    let shown = sql_query("SELECT current_setting('synchronous_commit') AS value");
    Ok(shown.get_result::<Setting>(connection)?.value)
}

/// A 202 promises that the import survives a crash of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_are_durable_whatever_the_server_defaults_to() -> Result<()> {
    let database = ServiceDatabase::postgres(SCHEMA, &NO_MIGRATIONS).await?;
    // The tests' server defaults to "off": "on" can only come from the connections.
    let url = database.postgres_database().context("no PostgreSQL")?.url().to_owned();
    let Database::Postgres(postgres) = database.open(SCHEMA)? else { anyhow::bail!("not PostgreSQL") };
    assert_eq!(synchronous_commit(&mut PgConnection::establish(&url)?)?, "off", "the server's default");
    assert_eq!(postgres.run(synchronous_commit).await?, "on");
    assert_eq!(postgres.write(synchronous_commit).await?, "on");
    assert_eq!(postgres.run_long(synchronous_commit).await?, "on");
    Ok(())
}
