//! Monthly partitions of unbounded tables in PostgreSQL: old months can be dropped at once, and the indexes of the current
//! month stay small. The partition key is a UUID version 7, whose first 48 bits are its time of creation, so a look-up by
//! id touches one partition.

use assay_contracts::time::Timestamp;
use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use uuid::Uuid;

use super::DatabaseError;

/// A table that is partitioned by range of a version 7 UUID, with a partition `<table>_default` for all other rows.
#[derive(Debug, Clone, Copy)]
pub struct PartitionedTable {
    /// Table name, without its schema.
    pub name: &'static str,
    /// Partition key column.
    pub key: &'static str,
}

/// Creates the missing partitions of `table` for the month before `now`, the current month and the next `months_ahead`.
/// Rows of those months in the default partition (after a clock error, or a time without maintenance) are moved. Safe to
/// call at any time and from several processes at once.
///
/// # Errors
/// When the database refuses, or the table stays locked for more than two seconds; earlier months are already created.
pub fn ensure_monthly_partitions(
    connection: &mut PgConnection,
    table: PartitionedTable,
    now: Timestamp,
    months_ahead: u32,
) -> Result<(), DatabaseError> {
    let today = DateTime::<Utc>::from_timestamp_millis(now.as_millis()).unwrap_or_default().date_naive();
    let first = today.with_day(1).unwrap_or(today) - Months::new(1);
    for offset in 0..=months_ahead + 1 {
        ensure_partition(connection, table, first + Months::new(offset))?;
    }
    Ok(())
}

fn ensure_partition(
    connection: &mut PgConnection,
    table: PartitionedTable,
    month: NaiveDate,
) -> Result<(), DatabaseError> {
    let partition = format!("{}_{}_{:02}", table.name, month.year(), month.month());
    if exists(connection, &partition)? {
        return Ok(());
    }
    connection.transaction(|connection| {
        // All other queries would queue behind a pending table lock. The advisory lock serialises two processes.
        connection.batch_execute(&format!(
            "SET LOCAL lock_timeout = '2s'; \
             SELECT pg_advisory_xact_lock(hashtextextended('assay partitions of {}', 0))",
            table.name
        ))?;
        if exists(connection, &partition)? {
            return Ok(());
        }
        Ok(connection.batch_execute(&creation(table, &partition, month))?)
    })
}

/// Reads the catalogue: `to_regclass` may use the session's cache, and would miss a table that another process created
/// while this one waited for the lock.
fn exists(connection: &mut PgConnection, table: &str) -> Result<bool, DatabaseError> {
    let found = diesel::dsl::sql::<Bool>(
        "EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = ",
    )
    .bind::<Text, _>(table)
    .sql(")");
    Ok(diesel::select(found).get_result(connection)?)
}

/// A partition can only be attached when no row of its range lies in the default partition. Attaching does not lock out
/// readers, and a query planned before it would look for a moved row in the default partition: hence the exclusive lock on
/// the table, for a short time.
fn creation(table: PartitionedTable, partition: &str, month: NaiveDate) -> String {
    let PartitionedTable { name, key } = table;
    let (from, to) = (lowest_id_of(month), lowest_id_of(month + Months::new(1)));
    format!(
        "LOCK TABLE ONLY {name} IN ACCESS EXCLUSIVE MODE; \
         CREATE TABLE {partition} (LIKE {name} INCLUDING ALL); \
         WITH moved AS (DELETE FROM {name}_default WHERE {key} >= '{from}' AND {key} < '{to}' RETURNING *) \
         INSERT INTO {partition} SELECT * FROM moved; \
         ALTER TABLE {name} ATTACH PARTITION {partition} FOR VALUES FROM ('{from}') TO ('{to}')"
    )
}

/// The smallest UUID whose first 48 bits are the month's first millisecond.
fn lowest_id_of(month: NaiveDate) -> Uuid {
    let millis = month.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_millis();
    Uuid::from_u128((millis.max(0) as u128) << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_id_of_month_is_below_every_id_of_that_month() {
        let month = NaiveDate::from_ymd_opt(2026, 11, 1).unwrap();
        let bound = lowest_id_of(month);
        let millis = 1_793_491_200_000_u64; // 2026-11-01T00:00:00Z
        let first = uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid();
        let before = uuid::Builder::from_unix_timestamp_millis(millis - 1, &[255; 10]).into_uuid();
        assert!(before < bound && bound <= first, "{before} < {bound} <= {first}");
    }
}
