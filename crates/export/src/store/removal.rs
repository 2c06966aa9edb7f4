//! How rows go and how files get another period. The same statements for both databases.

use std::collections::HashSet;

use assay_contracts::ids::EventId;
use assay_contracts::retention::Period;
use assay_contracts::time::Timestamp;

use crate::domain::removal::DeletedRow;

/// Takes the place of the row, or that of one to come: the same key makes concurrent writers wait for each other. The row
/// that stays is nobody's and newer than every evaluation (the largest number there is).
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

/// Gives files of an organization the expiry that follows from a period, where they have another. A complete export moves no
/// more: it was updated last when it was completed.
pub(super) fn set_file_period(period: Period) -> String {
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

/// The deletions whose events were not handled before, in the order in which rows are locked.
pub(super) fn unhandled(rows: Vec<DeletedRow>, new: &HashSet<EventId>) -> Vec<DeletedRow> {
    let mut rows: Vec<_> = rows.into_iter().filter(|row| new.contains(&row.event_id)).collect();
    rows.sort_by_key(|row| row.ticket_id);
    rows
}
