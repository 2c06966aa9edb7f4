//! The row of the read model: sort keys and the rendered CSV lines of an evaluation.

use std::collections::HashMap;

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::ids::{EvaluationId, EventId, OrganizationId, TicketId};
use assay_contracts::time::Timestamp;

use super::csv;
use super::evaluation_facts::EvaluationFacts;

/// One row for each ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvaluationRow {
    /// The event with the evaluation, for the inbox; not stored in the row.
    pub event_id: EventId,
    pub organization_id: OrganizationId,
    pub ticket_id: TicketId,
    /// Timestamp of the first message; exports filter and sort by it.
    pub conversation_started_at: Timestamp,
    /// A later evaluation of the same ticket replaces the row.
    pub evaluated_at: Timestamp,
    /// Tie-breaker of evaluations with the same timestamp.
    pub evaluation_id: EvaluationId,
    /// Column version of the lines.
    pub columns_version: i16,
    /// Sequence of the evaluation in its organization, see [`super::sequence_tracker`].
    pub sequence: i64,
    /// Line of an `axis` file, without its terminator.
    pub axis_line: String,
    /// Line of a `resolution_audit` file, without its terminator.
    pub audit_line: String,
    /// What lists and summaries read.
    pub facts: EvaluationFacts,
}

impl EvaluationRow {
    pub fn of(event_id: EventId, event: &ConversationEvaluated) -> Self {
        let [axis_line, audit_line] = csv::render_both(event);
        Self {
            event_id,
            organization_id: event.organization_id,
            ticket_id: event.ticket.id,
            conversation_started_at: event.ticket.started_at,
            evaluated_at: event.evaluated_at,
            evaluation_id: event.evaluation_id,
            columns_version: csv::COLUMNS_VERSION,
            sequence: event.sequence,
            axis_line,
            audit_line,
            facts: EvaluationFacts::of(event),
        }
    }

    /// Whether this row replaces `other` of the same ticket. The upserts of the stores apply the same rule.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        (self.evaluated_at, self.evaluation_id) > (other.evaluated_at, other.evaluation_id)
    }
}

/// The newest row of each ticket, sorted by ticket id: a statement cannot update a row twice, and a common lock order avoids
/// deadlocks.
pub fn newest_of_each_ticket(rows: Vec<&EvaluationRow>) -> Vec<&EvaluationRow> {
    let mut newest: HashMap<TicketId, &EvaluationRow> = HashMap::with_capacity(rows.len());
    for row in rows {
        match newest.get(&row.ticket_id) {
            Some(known) if !row.is_newer_than(known) => {}
            _ => {
                newest.insert(row.ticket_id, row);
            }
        }
    }
    let mut rows: Vec<&EvaluationRow> = newest.into_values().collect();
    rows.sort_unstable_by_key(|row| row.ticket_id);
    rows
}
