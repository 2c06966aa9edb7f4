//! What an export keeps of an evaluation: where it belongs in a file, and its lines.

use std::collections::HashMap;

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::{EvaluationId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;

use super::csv;

/// One row of the read model; there is one for each ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationRow {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The ticket.
    pub ticket_id: TicketId,
    /// Timestamp of the conversation's first message: what filters and order go by.
    pub conversation_started_at: Timestamp,
    /// When the evaluation was made; a later one of the same ticket replaces the row.
    pub evaluated_at: Timestamp,
    /// Decides between two evaluations of the same moment.
    pub evaluation_id: EvaluationId,
    /// Version of the columns that the lines were rendered with.
    pub columns_version: i16,
    /// Its place among the evaluations of the organization, see [`super::arrivals`]; absent in events of earlier releases.
    pub sequence: Option<i64>,
    /// Line of the file of kind `axis`, without its end.
    pub axis_line: String,
    /// Line of the file of kind `resolution_audit`, without its end.
    pub audit_line: String,
}

impl EvaluationRow {
    /// The row of an evaluation.
    pub fn of(event: &ConversationEvaluated) -> Self {
        let [axis_line, audit_line] = csv::render_both(event);
        Self {
            organization_id: event.organization_id,
            ticket_id: event.ticket.id,
            conversation_started_at: event.ticket.started_at,
            evaluated_at: event.evaluated_at,
            evaluation_id: event.evaluation_id,
            columns_version: csv::COLUMNS_VERSION,
            sequence: event.sequence,
            axis_line,
            audit_line,
        }
    }

    /// Whether this row replaces `other` of the same ticket. The same rule stands in the stores' SQL.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.evaluated_at, self.evaluation_id) > (other.evaluated_at, other.evaluation_id)
    }
}

/// The newest row of each ticket, in the order of ticket ids: one statement cannot touch a row twice, and two
/// transactions that lock rows in one order never wait for each other in a circle.
pub fn newest_of_each_ticket(rows: Vec<EvaluationRow>) -> Vec<EvaluationRow> {
    let mut newest: HashMap<TicketId, EvaluationRow> = HashMap::with_capacity(rows.len());
    for row in rows {
        match newest.get(&row.ticket_id) {
            Some(known) if !row.is_newer_than(known) => {}
            _ => {
                newest.insert(row.ticket_id, row);
            }
        }
    }
    let mut rows: Vec<EvaluationRow> = newest.into_values().collect();
    rows.sort_unstable_by_key(|row| row.ticket_id);
    rows
}
