//! Tables that grow without end are partitioned by month in PostgreSQL: old months can be dropped at once, and the
//! indexes of the current one stay small. The partition key is an id of UUID version 7, whose first 48 bits are its
//! time of creation, so that a look-up by id touches one partition.

use assay_contracts::time::Timestamp;
use chrono::{DateTime, Datelike, Months, NaiveDate, Utc};
use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use uuid::Uuid;

use super::DatabaseError;

/// Makes sure that `table` (partitioned by range of a version 7 UUID) has partitions for the month before `now`, its
/// own and the next `months_ahead`. Safe to be called at any time and by several processes at once.
///
/// # Errors
/// When the database refuses.
pub fn ensure_monthly_partitions(
    connection: &mut PgConnection,
    table: &str,
    now: Timestamp,
    months_ahead: u32,
) -> Result<(), DatabaseError> {
    let today = DateTime::<Utc>::from_timestamp_millis(now.as_millis()).unwrap_or_default().date_naive();
    let first = today.with_day(1).unwrap_or(today) - Months::new(1);
    for offset in 0..=months_ahead + 1 {
        let month = first + Months::new(offset);
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {table}_{}_{:02} PARTITION OF {table} FOR VALUES FROM ('{}') TO ('{}')",
            month.year(),
            month.month(),
            lowest_id_of(month),
            lowest_id_of(month + Months::new(1)),
        );
        connection.batch_execute(&statement)?;
    }
    Ok(())
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
