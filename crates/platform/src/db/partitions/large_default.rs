//! A large default partition becomes an ordinary one, and an empty default partition takes its place: no row moves, and
//! nothing is read under an exclusive lock.
//!
//! PostgreSQL attaches a table without reading it if a validated constraint says that its rows are in the range of the
//! partition. Validating reads all rows beside writers. Meanwhile the default partition refuses rows outside of the range.
//! The range reaches a month beyond the present and beyond every row, so it refuses only a row whose time is even further off.
//!
//! All rows must be in one gap between partitions. Rows in other gaps are moved first, in portions.

use assay_contracts::time::Timestamp;
use chrono::{DateTime, Months, Utc};
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::bounds::{IdRange, gaps};
use super::{
    DatabaseError, PartitionedTable, first_day, free_name, lock_creation, lowest_id_of, month_of, name_of,
};

/// A smaller default partition is read within a tenth of a second, and its rows are moved into the partitions of their months.
const LARGE_BYTES: i64 = 128 * 1024 * 1024;

/// Outcome of [`attach_large_default`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttachOutcome {
    /// It is an ordinary partition now.
    Attached,
    /// It is small or empty, or has rows in several gaps.
    Kept,
    /// Another process is about to attach it.
    Busy,
}

/// Attaches a large default partition of `table` as an ordinary one.
///
/// # Errors
/// When the database refuses, or the table stays locked for more than two seconds; the default partition is as before.
pub(super) fn attach_large_default(
    connection: &mut PgConnection,
    table: PartitionedTable,
    now: Timestamp,
) -> Result<AttachOutcome, DatabaseError> {
    if find_default(connection, table)?.bytes < LARGE_BYTES {
        return Ok(AttachOutcome::Kept);
    }
    let outcome = with_session_lock(connection, table, |connection| {
        match range_of_rows(connection, table, now)? {
            Some(range) => {
                let attached = attach(connection, table, range);
                // The first error says more; `drop_abandoned_constraint` tries again.
                if attached.is_err()
                    && let Err(cause) = drop_constraint(connection, table)
                {
                    tracing::warn!(table = table.name, %cause, "the constraint of a new partition stays for now");
                }
                attached
            }
            None => Ok(AttachOutcome::Kept),
        }
    })?;
    Ok(outcome.unwrap_or(AttachOutcome::Busy))
}

/// Drops the constraint of [`attach`] if a process has ended without dropping it.
///
/// # Errors
/// As [`attach_large_default`].
pub(super) fn drop_abandoned_constraint(
    connection: &mut PgConnection,
    table: PartitionedTable,
) -> Result<(), DatabaseError> {
    if find_default(connection, table)?.has_range {
        with_session_lock(connection, table, |connection| drop_constraint(connection, table))?;
    }
    Ok(())
}

/// Runs `work` under an advisory lock of the session, which spans transactions; `None` when another session holds the lock.
fn with_session_lock<T>(
    connection: &mut PgConnection,
    table: PartitionedTable,
    work: impl FnOnce(&mut PgConnection) -> Result<T, DatabaseError>,
) -> Result<Option<T>, DatabaseError> {
    let key = format!("hashtextextended('assay default partition of {}', 0)", table.name);
    let lock = diesel::dsl::sql::<Bool>(&format!("pg_try_advisory_lock({key})"));
    if !diesel::select(lock).get_result(connection)? {
        return Ok(None);
    }
    let outcome = work(connection);
    let unlocked = connection.batch_execute(&format!("SELECT pg_advisory_unlock({key})"));
    let outcome = outcome?;
    unlocked?;
    Ok(Some(outcome))
}

/// The range of the new partition; `None` when the default partition has no rows, or has rows in several gaps.
fn range_of_rows(
    connection: &mut PgConnection,
    table: PartitionedTable,
    now: Timestamp,
) -> Result<Option<IdRange>, DatabaseError> {
    let PartitionedTable { name, key } = table;
    let ends = format!(
        "SELECT (SELECT {key} FROM {name}_default ORDER BY {key} LIMIT 1) AS lowest, \
                (SELECT {key} FROM {name}_default ORDER BY {key} DESC LIMIT 1) AS highest"
    );
    let Ends { lowest: Some(lowest), highest: Some(highest) } =
        diesel::sql_query(ends).get_result(connection)?
    else {
        return Ok(None);
    };
    let gap = gaps(connection, table)?.into_iter().find(|gap| gap.contains(lowest) && gap.contains(highest));
    let present = DateTime::<Utc>::from_timestamp_millis(now.as_millis()).unwrap_or_default().date_naive();
    let latest = month_of(highest).max(first_day(present));
    let months_around_rows = IdRange {
        from: lowest_id_of(month_of(lowest) - Months::new(1)),
        to: lowest_id_of(latest + Months::new(2)),
    };
    Ok(gap.map(|gap| gap.intersection(months_around_rows)))
}

fn attach(
    connection: &mut PgConnection,
    table: PartitionedTable,
    IdRange { from, to }: IdRange,
) -> Result<AttachOutcome, DatabaseError> {
    let PartitionedTable { name, key } = table;
    connection.transaction(|connection| {
        lock_creation(connection, table)?;
        connection.batch_execute(&format!(
            "ALTER TABLE {name}_default DROP CONSTRAINT IF EXISTS {name}_range; \
             ALTER TABLE {name}_default ADD CONSTRAINT {name}_range \
               CHECK ({key} >= '{from}'::uuid AND {key} < '{to}'::uuid) NOT VALID"
        ))
    })?;
    connection.transaction(|connection| {
        connection.batch_execute(&format!(
            "SET LOCAL statement_timeout = 0; ALTER TABLE {name}_default VALIDATE CONSTRAINT {name}_range"
        ))
    })?;
    connection.transaction(|connection| {
        lock_creation(connection, table)?;
        let partition = free_name(connection, &format!("{}_and_later", name_of(table, month_of(from))))?;
        connection.batch_execute(&format!(
            "LOCK TABLE ONLY {name}, ONLY {name}_default IN ACCESS EXCLUSIVE MODE; \
             ALTER TABLE {name} DETACH PARTITION {name}_default; \
             ALTER TABLE {name}_default RENAME TO {partition}; \
             ALTER TABLE {name} ATTACH PARTITION {partition} FOR VALUES FROM ('{from}') TO ('{to}'); \
             ALTER TABLE {partition} DROP CONSTRAINT {name}_range; \
             CREATE TABLE {name}_default PARTITION OF {name} DEFAULT"
        ))?;
        tracing::info!(partition, "the large default partition becomes an ordinary one");
        Ok(AttachOutcome::Attached)
    })
}

fn drop_constraint(connection: &mut PgConnection, table: PartitionedTable) -> Result<(), DatabaseError> {
    let name = table.name;
    connection.transaction(|connection| {
        connection.batch_execute(&format!(
            "SET LOCAL lock_timeout = '2s'; ALTER TABLE {name}_default DROP CONSTRAINT IF EXISTS {name}_range"
        ))
    })?;
    Ok(())
}

#[derive(QueryableByName)]
struct Ends {
    #[diesel(sql_type = Nullable<SqlUuid>)]
    lowest: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    highest: Option<Uuid>,
}

#[derive(QueryableByName, Default)]
struct DefaultPartition {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
    #[diesel(sql_type = Bool)]
    has_range: bool,
}

fn find_default(connection: &mut PgConnection, table: PartitionedTable) -> QueryResult<DefaultPartition> {
    const DEFAULT: &str = "
        SELECT pg_relation_size(oid) AS bytes,
               EXISTS (SELECT FROM pg_constraint WHERE conrelid = pg_class.oid AND conname = $2) AS has_range
          FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relname = $1";
    let found = diesel::sql_query(DEFAULT)
        .bind::<Text, _>(format!("{}_default", table.name))
        .bind::<Text, _>(format!("{}_range", table.name))
        .get_result(connection)
        .optional()?;
    Ok(found.unwrap_or_default())
}
