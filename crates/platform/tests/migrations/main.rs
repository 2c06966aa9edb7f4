//! Applying migrations, tested with small ones. The migrations of the services are tested by the package `assay`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anyhow::{Context, Result};
use assay_platform::db::{Database, DatabaseError, Migrations, embed};
use assay_testkit::{ServiceDatabase, on_both_databases};
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};

/// The schema of any service will do: test databases know only the database users of services.
const SCHEMA: &str = "export";

const FIRST: Migrations = Migrations {
    postgres: embed!("tests/migrations/sets/first/postgres"),
    sqlite: embed!("tests/migrations/sets/first/sqlite"),
};

const SECOND: Migrations = Migrations {
    postgres: embed!("tests/migrations/sets/second/postgres"),
    sqlite: embed!("tests/migrations/sets/second/sqlite"),
};

/// A release.
static RELEASE: [Migrations; 1] = [FIRST];
/// Its successor.
static NEXT: [Migrations; 2] = [FIRST, SECOND];
/// A release that no longer knows the first migration.
static REPLACED: [Migrations; 1] = [SECOND];
/// A successor with a faulty migration.
static FAILING: [Migrations; 2] = [
    FIRST,
    Migrations {
        postgres: embed!("tests/migrations/sets/failing/postgres"),
        sqlite: embed!("tests/migrations/sets/failing/sqlite"),
    },
];

const SECOND_NAME: &str = "2026-01-02-000000_second";

/// A database that [`RELEASE`] works on.
struct Fixture {
    service_database: ServiceDatabase,
    database: Database,
}

impl Fixture {
    async fn on_sqlite() -> Result<Self> {
        Self::at(ServiceDatabase::sqlite(SCHEMA, &RELEASE).await?)
    }

    async fn on_postgres() -> Result<Self> {
        Self::at(ServiceDatabase::postgres(SCHEMA, &RELEASE).await?)
    }

    fn at(service_database: ServiceDatabase) -> Result<Self> {
        Ok(Self { database: service_database.open(SCHEMA)?, service_database })
    }

    async fn has_table(&self, name: &str) -> Result<bool> {
        let query = format!("SELECT * FROM {name}");
        let outcome: Result<usize, DatabaseError> = match &self.database {
            Database::Postgres(postgres) => {
                postgres.run(move |connection| Ok(sql_query(query).execute(connection)?)).await
            }
            Database::Sqlite(sqlite) => {
                sqlite.read(move |connection| Ok(sql_query(query).execute(connection)?)).await
            }
        };
        match outcome {
            Ok(_) => Ok(true),
            Err(DatabaseError::Statement(_)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

on_both_databases! {
    Fixture {
        failed_migration_is_named_and_rolled_back,
        previous_release_is_ready_on_a_newer_schema,
        state_before_the_first_release_is_refused,
    }
}

async fn failed_migration_is_named_and_rolled_back(fixture: Fixture) -> Result<()> {
    assert!(fixture.has_table("first").await?, "the table of the first migration");
    let error = fixture.database.migrate(&FAILING).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("migration failed: {SECOND_NAME}: ")), "{error}");
    assert!(!fixture.has_table("second").await?, "the migration was partly applied");
    assert_eq!(fixture.database.pending_migrations(&FAILING).await?, [SECOND_NAME]);
    // The corrected migration continues after the last applied one.
    assert_eq!(fixture.database.migrate(&NEXT).await?, [SECOND_NAME]);
    assert!(fixture.has_table("second").await?);
    Ok(())
}

async fn previous_release_is_ready_on_a_newer_schema(fixture: Fixture) -> Result<()> {
    assert_eq!(fixture.database.pending_migrations(&NEXT).await?, [SECOND_NAME]);
    fixture.database.migrate(&NEXT).await?;
    assert!(fixture.database.pending_migrations(&RELEASE).await?.is_empty());
    assert!(fixture.database.migrate(&RELEASE).await?.is_empty());
    assert!(fixture.database.pending_migrations(&NEXT).await?.is_empty());
    Ok(())
}

async fn state_before_the_first_release_is_refused(fixture: Fixture) -> Result<()> {
    let refusals = [
        fixture.database.migrate(&REPLACED).await.unwrap_err(),
        fixture.database.pending_migrations(&REPLACED).await.unwrap_err(),
    ];
    for refusal in refusals.map(|error| error.to_string()) {
        let schema_and_version =
            "the schema `export` has migration 20260101000000 of a version of Assay before 0.1.0";
        assert!(refusal.starts_with(schema_and_version), "{refusal}");
        assert!(refusal.contains("start with an empty database"), "{refusal}");
    }
    assert!(!fixture.has_table("second").await?, "the migration was applied");
    assert!(fixture.database.migrate(&RELEASE).await?.is_empty());
    Ok(())
}

/// A migration that waits for a table lock blocks all later queries of the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migration_fails_when_a_table_stays_locked() -> Result<()> {
    let fixture = Fixture::on_postgres().await?;
    let url = fixture.service_database.postgres_database().context("no PostgreSQL")?.url().to_owned();
    let mut reader = PgConnection::establish(&url)?;
    reader.batch_execute(&format!("BEGIN; LOCK TABLE {SCHEMA}.first IN ACCESS SHARE MODE"))?;
    let error = fixture.database.migrate(&NEXT).await.unwrap_err().to_string();
    assert!(error.contains(SECOND_NAME) && error.contains("lock timeout"), "{error}");
    assert!(!fixture.has_table("second").await?, "the migration was partly applied");
    reader.batch_execute("COMMIT")?;
    assert_eq!(fixture.database.migrate(&NEXT).await?, [SECOND_NAME]);
    Ok(())
}
