//! Deletion of rows and retention of files. The same statements for both databases.

use std::collections::HashSet;

use assay_contracts::ids::EventId;
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::time::Timestamp;

use crate::domain::removal::DeletedRow;

/// Writes a tombstone under the key of the row, present or future: concurrent writers of the key wait for each other. Its
/// organization is the nil UUID, and its timestamp is newer than that of every evaluation (`i64::MAX`).
pub(super) const DELETE_ROW: &str = "
    INSERT INTO evaluation_rows (ticket_id, organization_id, conversation_started_at, evaluated_at, evaluation_id,
                                 columns_version, axis_line, audit_line, deleted_at)
    VALUES (?, ?, 0, 9223372036854775807, ?, 0, '', '', ?)
    ON CONFLICT (ticket_id) DO UPDATE
       SET organization_id = excluded.organization_id,
           conversation_started_at = excluded.conversation_started_at,
           evaluated_at = excluded.evaluated_at,
           evaluation_id = excluded.evaluation_id,
           columns_version = excluded.columns_version,
           axis_line = excluded.axis_line,
           audit_line = excluded.audit_line,
           deleted_at = excluded.deleted_at
     WHERE evaluation_rows.organization_id = ?";

/// Updates the expiry of files where it differs. `updated_at` of a complete export is the time of its completion.
pub(super) fn apply_file_retention(period: RetentionPeriod) -> String {
    let expiry = match period.millis() {
        Some(millis) => format!("updated_at + {millis}"),
        None => Timestamp::MAX.as_millis().to_string(),
    };
    format!(
        "UPDATE exports SET file_expires_at = {expiry} WHERE id IN \
         (SELECT id FROM exports WHERE organization_id = ? AND status = 'complete' AND file_removed_at IS NULL \
          AND file_expires_at <> {expiry} LIMIT ?)"
    )
}

/// The deletions of events that were not handled before, in lock order.
pub(super) fn new_deletions(rows: Vec<DeletedRow>, new: &HashSet<EventId>) -> Vec<DeletedRow> {
    let mut rows: Vec<_> = rows.into_iter().filter(|row| new.contains(&row.event_id)).collect();
    rows.sort_by_key(|row| row.ticket_id);
    rows
}
