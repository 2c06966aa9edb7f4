//! Runs a test suite on both databases.

/// Makes two tests of each named function: one on PostgreSQL, one on SQLite.
macro_rules! on_both_databases {
    ($($check:ident),+ $(,)?) => {
        mod on_postgres {
            $(#[tokio::test]
            async fn $check() -> anyhow::Result<()> {
                let fresh = super::test_databases::postgres(&super::MIGRATIONS).await?;
                super::$check(fresh.database.clone()).await
            })+
        }
        mod on_sqlite {
            $(#[tokio::test]
            async fn $check() -> anyhow::Result<()> {
                let fresh = super::test_databases::sqlite(&super::MIGRATIONS).await?;
                super::$check(fresh.database.clone()).await
            })+
        }
    };
}

pub(crate) use on_both_databases;
