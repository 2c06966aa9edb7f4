//! Tables that grow without end are partitioned by month in PostgreSQL: old months can be dropped at once, and the
//! indexes of the current one stay small. The partition key is an id of UUID version 7, whose first 48 bits are its
//! time of creation, so that a look-up by id touches one partition.

use assay_contracts::time::Timestamp;
use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use uuid::Uuid;

use super::DatabaseError;

/// A table that is partitioned by range of a version 7 UUID, with a partition `<table>_default` for what fits no other.
#[derive(Debug, Clone, Copy)]
pub struct PartitionedTable {
    /// Its name.
    pub name: &'static str,
    /// The column it is partitioned by.
    pub key: &'static str,
}

/// Makes sure that `table` has partitions for the month before `now`, its own and the next `months_ahead`. Rows of those
/// months that lie in the default partition (a clock was wrong, or nobody made partitions for a while) are moved. Safe
/// to be called at any time and by several processes at once.
///
/// # Errors
/// When the database refuses, or somebody else holds the table for more than two seconds; the months before are made.
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
        // Everybody else would wait behind a lock that is waited for. Two processes take turns.
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

/// Asks the catalogue itself: `to_regclass` may answer from what the session remembers, and would go on missing a table
/// that another process made while this one waited for its turn.
fn exists(connection: &mut PgConnection, table: &str) -> Result<bool, DatabaseError> {
    let found = diesel::dsl::sql::<Bool>(
        "EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema() AND tablename = ",
    )
    .bind::<Text, _>(table)
    .sql(")");
    Ok(diesel::select(found).get_result(connection)?)
}

/// A partition can only be attached when no row of its range lies in the default partition. Attaching it does not keep
/// others from the table, and who has planned a look-up before would look for a moved row where it was: so everybody
/// waits, at the table itself, for the moment that it takes.
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
    fn the_lowest_id_of_a_month_lies_below_every_id_made_in_it() {
        let month = NaiveDate::from_ymd_opt(2026, 11, 1).unwrap();
        let bound = lowest_id_of(month);
        let millis = 1_793_491_200_000_u64; // 2026-11-01T00:00:00Z
        let first = uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid();
        let before = uuid::Builder::from_unix_timestamp_millis(millis - 1, &[255; 10]).into_uuid();
        assert!(before < bound && bound <= first, "{before} < {bound} <= {first}");
    }
}
