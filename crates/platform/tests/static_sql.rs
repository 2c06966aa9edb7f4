//! Caching of prepared statements with constant text.

use anyhow::{Context, Result};
use assay_platform::db::static_sql;
use assay_testkit::ServiceDatabase;
use diesel::pg::Pg;
use diesel::sql_types::{Array, BigInt, Nullable, Text};
use diesel::sqlite::SqliteConnection;
use diesel::{Connection, PgConnection, QueryableByName, RunQueryDsl, sql_query};

static NO_MIGRATIONS: [assay_platform::db::Migrations; 0] = [];

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

#[tokio::test]
async fn static_statement_is_prepared_once_per_connection() -> Result<()> {
    let database = ServiceDatabase::postgres("export", &NO_MIGRATIONS).await?;
    let mut connection =
        PgConnection::establish(database.postgres_database().context("no PostgreSQL")?.url())?;
    for count in 0..8 {
        let sum: Number = static_sql("SELECT coalesce(sum(n), $2)::bigint AS number FROM unnest($1) AS n")
            .bind::<Array<BigInt>, _>((0..count).collect::<Vec<i64>>())
            .bind::<BigInt, _>(-1_i64)
            .get_result(&mut connection)?;
        assert_eq!(sum.number, if count == 0 { -1 } else { count * (count - 1) / 2 });
    }
    let prepared: Vec<Number> = sql_query(
        "SELECT generic_plans + custom_plans AS number FROM pg_prepared_statements WHERE statement LIKE '%unnest%'",
    )
    .load(&mut connection)?;
    assert_eq!(prepared.iter().map(|row| row.number).collect::<Vec<_>>(), [8], "executions of one statement");
    Ok(())
}

#[test]
fn placeholders_are_bound_in_order_on_sqlite() -> Result<()> {
    let mut connection = SqliteConnection::establish(":memory:")?;
    for (text, expected) in [(Some("x"), 7), (None, 2)] {
        let number: Number = static_sql("SELECT CASE WHEN ? IS NULL THEN ? ELSE ? END AS number")
            .bind::<Nullable<Text>, _>(text)
            .bind::<BigInt, _>(2_i64)
            .bind::<BigInt, _>(7_i64)
            .get_result(&mut connection)?;
        assert_eq!(number.number, expected);
    }
    Ok(())
}

#[test]
fn debug_output_of_a_statement_is_its_text() {
    let statement = static_sql::<Pg>("SELECT $1").bind::<BigInt, _>(1_i64);
    assert_eq!(diesel::debug_query::<Pg, _>(&statement).to_string(), "SELECT $1 -- binds: [1]");
}
