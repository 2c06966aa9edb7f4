//! Stores rows of the read model; prunes the inbox and recorded responses.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_messaging::inbox::{self, Connection as _};
use assay_platform::db::DatabaseError;
use assay_platform::db::idempotency::Connection as _;

use super::{Connection, ROW_VALUES, facts, sequences, upsert_rows};
use crate::domain::evaluation_row::{EvaluationRow, newest_of_each_ticket};
use crate::store::CONSUMER;

/// Replaces a row under the rule of `EvaluationRow::is_newer_than`.
static UPSERT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO evaluation_rows (ticket_id, organization_id, conversation_started_at, evaluated_at,
                                      evaluation_id, columns_version, axis_line, audit_line)
         {ROW_VALUES}
         ON CONFLICT (ticket_id) DO UPDATE
            SET organization_id = excluded.organization_id,
                conversation_started_at = excluded.conversation_started_at,
                evaluated_at = excluded.evaluated_at,
                evaluation_id = excluded.evaluation_id,
                columns_version = excluded.columns_version,
                axis_line = excluded.axis_line,
                audit_line = excluded.audit_line
          WHERE (evaluation_rows.evaluated_at, evaluation_rows.evaluation_id)
              < (excluded.evaluated_at, excluded.evaluation_id)
         RETURNING ticket_id"
    )
});

pub fn record(
    connection: &mut Connection,
    rows: &[EvaluationRow],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let ids: Vec<_> = rows.iter().map(|row| row.event_id).collect();
    let new = connection.record_events(CONSUMER, &ids, now)?;
    let new_rows: Vec<_> = rows.iter().filter(|row| new.contains(&row.event_id)).collect();
    // An export waits for the sequence number of every event, also where a newer evaluation of the ticket is stored. Organizations are in
    // sorted order, because `sequences::record` locks rows: the same order in all transactions avoids deadlocks.
    let mut arrived: BTreeMap<OrganizationId, Vec<i64>> = BTreeMap::new();
    for row in &new_rows {
        arrived.entry(row.organization_id).or_default().push(row.sequence);
    }
    let newest = newest_of_each_ticket(new_rows);
    let written = upsert_rows(connection, &UPSERT, &newest)?;
    facts::replace(connection, newest.iter().copied().filter(|row| written.contains(&row.ticket_id)), now)?;
    for (organization, sequence_numbers) in arrived {
        sequences::record(connection, organization, &sequence_numbers, now)?;
    }
    Ok(())
}

/// Removes old rows of the inbox and recorded responses. Returns their number.
pub fn prune_inbox_and_recorded_responses(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<usize, DatabaseError> {
    let pruned = connection.prune_events(now.plus_millis(-inbox::RETENTION_MILLIS), inbox::PRUNE_BATCH)?;
    Ok(pruned + connection.prune_recorded_responses(now)?)
}
