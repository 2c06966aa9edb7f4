//! Runs a test suite on both databases, in the schema of a service: that of any service will do.

/// Makes two tests of each named function: one on PostgreSQL, one on SQLite.
macro_rules! on_both_databases {
    ($($check:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test]
            async fn $check() -> anyhow::Result<()> {
                let database = assay_testkit::ServiceDatabase::postgres("ingest", &super::MIGRATIONS).await?;
                super::$check(database.open("ingest")?).await
            })+
        }
        mod on_sqlite {
            $(#[tokio::test]
            async fn $check() -> anyhow::Result<()> {
                let database = assay_testkit::ServiceDatabase::sqlite("ingest", &super::MIGRATIONS).await?;
                super::$check(database.open("ingest")?).await
            })+
        }
    };
}

pub(crate) use on_both_databases;
