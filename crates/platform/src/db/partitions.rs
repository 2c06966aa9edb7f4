//! Monthly partitions of unbounded tables in PostgreSQL: old months can be dropped at once, and the indexes of the current
//! month stay small. The partition key is a UUID version 7, whose first 48 bits are its time of creation, so a look-up by
//! id touches one partition.
//!
//! Rows of months without a partition (after a clock error, or a time without maintenance) go into the default partition.
//! PostgreSQL attaches a partition only when the default partition has no row of its range, and the table cannot be read
//! between the move of a row and the attachment. So a month with many such rows gets several partitions, one for each
//! portion of rows: every move is a short transaction. To attach a partition, PostgreSQL reads the rest of the default partition
//! under an exclusive lock: so the rows of a large default partition are not moved, but it becomes a partition itself
//! ([`large_default`]).

mod bounds;
mod large_default;

use std::time::Duration;

use assay_contracts::time::Timestamp;
use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use self::bounds::{IdRange, gaps};
use self::large_default::{AttachOutcome, attach_large_default, drop_abandoned_constraint};
use super::{DatabaseError, Postgres};

/// Maximum rows and bytes that one transaction moves out of the default partition: it locks the table for less than a second.
const PORTION_ROWS: i64 = 20_000;
const PORTION_BYTES: i64 = 16 * 1024 * 1024;

/// Pause between two portions, in which writers work.
const PORTION_PAUSE: Duration = Duration::from_millis(200);

/// A table that is partitioned by range of a version 7 UUID, with a partition `<table>_default` for all other rows.
#[derive(Debug, Clone, Copy)]
pub struct PartitionedTable {
    /// Table name, without its schema.
    pub name: &'static str,
    /// Partition key column.
    pub key: &'static str,
}

/// Prepares `table` for writes at `now`: creates the partitions of the current and the next month. While the
/// default partition has rows, only [`maintain_partitions`] creates them, and the default partition takes further rows.
///
/// # Errors
/// As [`ensure_monthly_partitions`].
pub async fn prepare_partitions(
    database: &Postgres,
    table: PartitionedTable,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    database
        .run(move |connection| {
            drop_abandoned_constraint(connection, table)?;
            ensure_monthly_partitions(connection, table, now, 0..=1)
        })
        .await
}

/// Creates the missing partitions of `table` from the month before `now` to `months_ahead`, after it has moved the rows of
/// the default partition into new partitions. Safe to call at any time and from several processes at once.
///
/// # Errors
/// As [`ensure_monthly_partitions`]; portions that were moved before stay moved.
pub async fn maintain_partitions(
    database: &Postgres,
    table: PartitionedTable,
    now: Timestamp,
    months_ahead: i32,
) -> Result<(), DatabaseError> {
    prepare_partitions(database, table, now).await?;
    // Without a deadline for the calls: each transaction has its own statement timeout.
    loop {
        match database.run_long(move |connection| attach_large_default(connection, table, now)).await? {
            AttachOutcome::Attached => continue,
            AttachOutcome::Busy => return Ok(()),
            AttachOutcome::Kept => {}
        }
        if !database.run_long(move |connection| move_portion(connection, table)).await? {
            break;
        }
        tokio::time::sleep(PORTION_PAUSE).await;
    }
    let months = -1..=months_ahead;
    database.run(move |connection| ensure_monthly_partitions(connection, table, now, months)).await
}

/// Creates the missing partitions of `table` for `months` relative to that of `now`. Does nothing while the default partition
/// has rows: PostgreSQL would read all of them for each partition, under an exclusive lock.
///
/// # Errors
/// When the database refuses, or the table stays locked for more than two seconds; earlier months are already created.
pub fn ensure_monthly_partitions(
    connection: &mut PgConnection,
    table: PartitionedTable,
    now: Timestamp,
    months: std::ops::RangeInclusive<i32>,
) -> Result<(), DatabaseError> {
    let today = DateTime::<Utc>::from_timestamp_millis(now.as_millis()).unwrap_or_default().date_naive();
    let current = first_day(today);
    for offset in months {
        let distance = Months::new(offset.unsigned_abs());
        let month = if offset < 0 { current - distance } else { current + distance };
        ensure_partition(connection, table, month)?;
    }
    Ok(())
}

fn ensure_partition(
    connection: &mut PgConnection,
    table: PartitionedTable,
    month: NaiveDate,
) -> Result<(), DatabaseError> {
    if missing_ranges(connection, table, month)?.is_empty() {
        return Ok(());
    }
    connection.transaction(|connection| {
        lock_creation(connection, table)?;
        if lowest_in_default(connection, table)?.is_some() {
            return Ok(());
        }
        for range in missing_ranges(connection, table, month)? {
            let partition = free_name(connection, &name_of(table, month))?;
            connection.batch_execute(&partition_creation(table, &partition, range))?;
        }
        Ok(())
    })
}

/// Moves rows of the default partition, the lowest of a gap between partitions and at most [`PORTION_ROWS`], into a new
/// partition: in one transaction, with a longer statement timeout. The last portion of a month takes the rest of its range.
/// False when the default partition is empty.
///
/// # Errors
/// As [`ensure_monthly_partitions`].
pub fn move_portion(connection: &mut PgConnection, table: PartitionedTable) -> Result<bool, DatabaseError> {
    connection.transaction(|connection| {
        lock_creation(connection, table)?;
        connection.batch_execute("SET LOCAL statement_timeout = '60s'")?;
        let Some((lowest, gap)) = gap_with_fewest_rows(connection, table)? else { return Ok(false) };
        let month = month_of(lowest);
        let rest = gap.intersection(range_of(month));
        let name = name_of(table, month);
        let (partition, to) = match end_of_portion(connection, table, rest)? {
            Some(end) => (free_numbered_name(connection, &name)?, end),
            None => (free_name(connection, &name)?, rest.to),
        };
        connection.batch_execute(&partition_creation(table, &partition, IdRange { to, ..rest }))?;
        tracing::info!(partition, "rows of the default partition moved into a new partition");
        Ok(true)
    })
}

/// The gap with the fewest rows in the default partition, and the lowest of these rows. The fewest first: once all
/// rows are in one gap, a large default partition is attached instead ([`large_default`]).
fn gap_with_fewest_rows(
    connection: &mut PgConnection,
    table: PartitionedTable,
) -> Result<Option<(Uuid, IdRange)>, DatabaseError> {
    let PartitionedTable { name, key } = table;
    let count = format!(
        "SELECT count(*) AS number, (array_agg(id ORDER BY id))[1] AS lowest FROM \
         (SELECT {key} AS id FROM {name}_default WHERE {key} >= $1 AND {key} < $2 ORDER BY {key} LIMIT {PORTION_ROWS}) AS found"
    );
    let mut fewest: Option<(i64, Uuid, IdRange)> = None;
    for gap in gaps(connection, table)? {
        let rows: RowsOfGap = diesel::sql_query(&count)
            .bind::<SqlUuid, _>(gap.from)
            .bind::<SqlUuid, _>(gap.to)
            .get_result(connection)?;
        if let Some(lowest) = rows.lowest
            && fewest.is_none_or(|(number, ..)| rows.number < number)
        {
            fewest = Some((rows.number, lowest, gap));
        }
    }
    Ok(fewest.map(|(_, lowest, gap)| (lowest, gap)))
}

#[derive(QueryableByName)]
struct RowsOfGap {
    #[diesel(sql_type = BigInt)]
    number: i64,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    lowest: Option<Uuid>,
}

/// The ids of `month` that no partition covers.
fn missing_ranges(
    connection: &mut PgConnection,
    table: PartitionedTable,
    month: NaiveDate,
) -> Result<Vec<IdRange>, DatabaseError> {
    let gaps = gaps(connection, table)?;
    let missing = gaps.into_iter().map(|gap| gap.intersection(range_of(month)));
    Ok(missing.filter(|range| !range.is_empty()).collect())
}

/// A free table name: `base`, or with a number when a table `base` exists.
fn free_name(connection: &mut PgConnection, base: &str) -> Result<String, DatabaseError> {
    if exists(connection, base)? { free_numbered_name(connection, base) } else { Ok(base.to_owned()) }
}

fn free_numbered_name(connection: &mut PgConnection, base: &str) -> Result<String, DatabaseError> {
    let mut number = 1;
    loop {
        let numbered = format!("{base}_{number}");
        if !exists(connection, &numbered)? {
            return Ok(numbered);
        }
        number += 1;
    }
}

/// All other queries queue behind a pending table lock: hence the short wait. It is longer than PostgreSQL's
/// `deadlock_timeout`, after which an autovacuum gives way. The advisory lock serialises processes.
fn lock_creation(connection: &mut PgConnection, table: PartitionedTable) -> QueryResult<()> {
    connection.batch_execute(&format!(
        "SET LOCAL lock_timeout = '2s'; \
         SELECT pg_advisory_xact_lock(hashtextextended('assay partitions of {}', 0))",
        table.name
    ))
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

#[derive(QueryableByName)]
struct Id {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
}

fn lowest_in_default(connection: &mut PgConnection, table: PartitionedTable) -> QueryResult<Option<Uuid>> {
    let PartitionedTable { name, key } = table;
    let query = format!("SELECT {key} AS id FROM {name}_default ORDER BY {key} LIMIT 1");
    let lowest: Option<Id> = diesel::sql_query(query).get_result(connection).optional()?;
    Ok(lowest.map(|lowest| lowest.id))
}

/// The id before which a portion of the rows in `range` ends; `None` when all of them are one portion.
fn end_of_portion(
    connection: &mut PgConnection,
    PartitionedTable { name, key }: PartitionedTable,
    IdRange { from, to }: IdRange,
) -> QueryResult<Option<Uuid>> {
    // The size of the whole row, which includes values that are stored outside of it.
    let query = format!(
        "WITH candidates AS (SELECT * FROM {name}_default WHERE {key} >= $1 AND {key} < $2 \
                             ORDER BY {key} LIMIT $3 + 1), \
              sums AS (SELECT {key} AS id, row_number() OVER (ORDER BY {key}) AS rows, \
                              sum(pg_column_size(candidates)) OVER (ORDER BY {key}) AS bytes FROM candidates) \
         SELECT id FROM sums WHERE rows > $3 OR (rows > 1 AND bytes > $4) ORDER BY id LIMIT 1"
    );
    let query = diesel::sql_query(query)
        .bind::<SqlUuid, _>(from)
        .bind::<SqlUuid, _>(to)
        .bind::<BigInt, _>(PORTION_ROWS)
        .bind::<BigInt, _>(PORTION_BYTES);
    Ok(query.get_result::<Id>(connection).optional()?.map(|end| end.id))
}

/// The statements that create a partition and move its rows. Attaching does not lock out readers, and a query planned before
/// would look for a moved row in the default partition: hence the exclusive lock on the table, for a short time.
fn partition_creation(table: PartitionedTable, partition: &str, IdRange { from, to }: IdRange) -> String {
    let PartitionedTable { name, key } = table;
    format!(
        "LOCK TABLE ONLY {name}, ONLY {name}_default IN ACCESS EXCLUSIVE MODE; \
         CREATE TABLE {partition} (LIKE {name} INCLUDING ALL); \
         WITH moved AS (DELETE FROM {name}_default WHERE {key} >= '{from}' AND {key} < '{to}' RETURNING *) \
         INSERT INTO {partition} SELECT * FROM moved; \
         ALTER TABLE {name} ATTACH PARTITION {partition} FOR VALUES FROM ('{from}') TO ('{to}')"
    )
}

fn name_of(table: PartitionedTable, month: NaiveDate) -> String {
    format!("{}_{}_{:02}", table.name, month.year(), month.month())
}

fn range_of(month: NaiveDate) -> IdRange {
    IdRange { from: lowest_id_of(month), to: lowest_id_of(month + Months::new(1)) }
}

fn month_of(id: Uuid) -> NaiveDate {
    let millis = i64::try_from(id.as_u128() >> 80).unwrap_or_default();
    first_day(DateTime::<Utc>::from_timestamp_millis(millis).unwrap_or_default().date_naive())
}

fn first_day(day: NaiveDate) -> NaiveDate {
    day.with_day(1).unwrap_or(day)
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
