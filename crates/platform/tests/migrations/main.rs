//! How migrations are applied, shown on small ones. Those of the services are tested by the package `assay`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anyhow::{Context, Result};
use assay_platform::db::{Database, DatabaseError, Migrations, embed};
use assay_testkit::{ServiceDatabase, on_both_databases};
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, RunQueryDsl, sql_query};

/// Any service's: a test database has its role.
const SCHEMA: &str = "export";

const FIRST: Migrations = Migrations {
    postgres: embed!("tests/migrations/sets/first/postgres"),
    sqlite: embed!("tests/migrations/sets/first/sqlite"),
};

/// A release, the next one, and a next one with a mistake.
static RELEASE: [Migrations; 1] = [FIRST];
static NEXT: [Migrations; 2] = [
    FIRST,
    Migrations {
        postgres: embed!("tests/migrations/sets/second/postgres"),
        sqlite: embed!("tests/migrations/sets/second/sqlite"),
    },
];
static FAILING: [Migrations; 2] = [
    FIRST,
    Migrations {
        postgres: embed!("tests/migrations/sets/failing/postgres"),
        sqlite: embed!("tests/migrations/sets/failing/sqlite"),
    },
];

const SECOND_NAME: &str = "2026-01-02-000000_second";

/// A database that [`RELEASE`] works on.
struct Stage {
    place: ServiceDatabase,
    database: Database,
}

impl Stage {
    async fn on_sqlite() -> Result<Self> {
        Self::at(ServiceDatabase::sqlite(SCHEMA, &RELEASE).await?)
    }

    async fn on_postgres() -> Result<Self> {
        Self::at(ServiceDatabase::postgres(SCHEMA, &RELEASE).await?)
    }

    fn at(place: ServiceDatabase) -> Result<Self> {
        Ok(Self { database: place.open(SCHEMA)?, place })
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
    Stage {
        a_failing_migration_names_itself_and_leaves_nothing_behind,
        the_release_before_is_ready_on_a_newer_schema_and_changes_nothing,
    }
}

async fn a_failing_migration_names_itself_and_leaves_nothing_behind(stage: Stage) -> Result<()> {
    assert!(stage.has_table("first").await?, "the table that is there before");
    let error = stage.database.migrate(&FAILING).await.unwrap_err().to_string();
    assert!(error.starts_with(&format!("migration failed: {SECOND_NAME}: ")), "{error}");
    assert!(!stage.has_table("second").await?, "a part of it stayed");
    assert_eq!(stage.database.pending_migrations(&FAILING).await?, [SECOND_NAME]);
    // Mended, it goes on where that one ended.
    assert_eq!(stage.database.migrate(&NEXT).await?, [SECOND_NAME]);
    assert!(stage.has_table("second").await?);
    Ok(())
}

async fn the_release_before_is_ready_on_a_newer_schema_and_changes_nothing(stage: Stage) -> Result<()> {
    assert_eq!(stage.database.pending_migrations(&NEXT).await?, [SECOND_NAME]);
    stage.database.migrate(&NEXT).await?;
    assert!(stage.database.pending_migrations(&RELEASE).await?.is_empty());
    assert!(stage.database.migrate(&RELEASE).await?.is_empty());
    assert!(stage.database.pending_migrations(&NEXT).await?.is_empty());
    Ok(())
}

/// A migration that waits for a table makes everybody else wait behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_gives_up_when_a_table_stays_in_use() -> Result<()> {
    let stage = Stage::on_postgres().await?;
    let url = stage.place.on_postgres().context("no PostgreSQL")?.url().to_owned();
    let mut reader = PgConnection::establish(&url)?;
    reader.batch_execute(&format!("BEGIN; LOCK TABLE {SCHEMA}.first IN ACCESS SHARE MODE"))?;
    let error = stage.database.migrate(&NEXT).await.unwrap_err().to_string();
    assert!(error.contains(SECOND_NAME) && error.contains("lock timeout"), "{error}");
    assert!(!stage.has_table("second").await?, "a part of it stayed");
    reader.batch_execute("COMMIT")?;
    assert_eq!(stage.database.migrate(&NEXT).await?, [SECOND_NAME]);
    Ok(())
}
