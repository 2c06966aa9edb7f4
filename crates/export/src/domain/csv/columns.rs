//! A column: its name and how its cell is written. Both are defined together, so that they cannot diverge.

use assay_contracts::evaluation::{Axis, Evaluation};

use super::event_fields::{EventFields, ai_tools};
use super::line::Line;

/// One column of an exported file.
pub struct Column {
    /// The name in the header.
    pub name: &'static str,
    cell: Cell,
}

/// How the cell is written, from the part of the event that it shows.
#[derive(Clone, Copy)]
enum Cell {
    Event(fn(&EventFields<'_>, &mut Line)),
    Evaluation(fn(&Evaluation, &mut Line)),
    Axis(fn(&Axis, &mut Line)),
}

pub(super) const fn column(name: &'static str, write: fn(&EventFields<'_>, &mut Line)) -> Column {
    Column { name, cell: Cell::Event(write) }
}

/// A column that is empty when the evaluation failed.
pub(super) const fn of_evaluation(name: &'static str, write: fn(&Evaluation, &mut Line)) -> Column {
    Column { name, cell: Cell::Evaluation(write) }
}

/// A column that is empty without AXIS.
pub(super) const fn of_axis(name: &'static str, write: fn(&Axis, &mut Line)) -> Column {
    Column { name, cell: Cell::Axis(write) }
}

impl Column {
    /// Appends exactly one cell.
    pub fn write(&self, fields: &EventFields<'_>, line: &mut Line) {
        match (self.cell, fields.evaluation, fields.axis()) {
            (Cell::Event(write), ..) => write(fields, line),
            (Cell::Evaluation(write), Some(evaluation), _) => write(evaluation, line),
            (Cell::Axis(write), _, Some(axis)) => write(axis, line),
            (Cell::Evaluation(_) | Cell::Axis(_), ..) => line.begin_cell(),
        }
    }
}

/// The leading columns of both kinds of file: ticket and status of the evaluation.
pub(super) static TICKET: [Column; 14] = [
    column("ticket_id", |fields, line| line.value(fields.ticket().id)),
    column("external_ticket_id", |fields, line| line.text(&fields.ticket().external_id)),
    column("source", |fields, line| line.text(&fields.ticket().source)),
    column("source_account_id", |fields, line| {
        line.optional_text(fields.ticket().source_account_id.as_deref())
    }),
    column("subject", |fields, line| line.optional_text(fields.ticket().subject.as_deref())),
    column("conversation_started_at", |fields, line| line.value(fields.ticket().started_at)),
    column("conversation_ended_at", |fields, line| line.value(fields.ticket().ended_at)),
    column("imported_at", |fields, line| line.value(fields.ticket().imported_at)),
    column("evaluated_at", |fields, line| line.value(fields.event.evaluated_at)),
    column("evaluation_status", |fields, line| line.value(fields.status())),
    of_evaluation("ai_involvement", |evaluation, line| line.value(evaluation.ai_involvement.as_str())),
    of_evaluation("ai_tools", |evaluation, line| line.list(&ai_tools(evaluation))),
    column("agent_ids", |fields, line| {
        line.list(&fields.ticket().agents.iter().map(|agent| agent.id).collect::<Vec<_>>())
    }),
    column("agent_names", |fields, line| {
        line.list(&fields.ticket().agents.iter().map(|agent| &agent.name).collect::<Vec<_>>())
    }),
];

/// Provenance of the evaluation.
pub(super) static PROVENANCE: [Column; 5] = [
    of_evaluation("scorer", |evaluation, line| line.value(evaluation.scorer.kind.as_str())),
    of_evaluation("scorer_version", |evaluation, line| line.text(&evaluation.scorer.version)),
    column("evaluation_id", |fields, line| line.value(fields.event.evaluation_id)),
    of_evaluation("transcript_sha256", |evaluation, line| line.value(&evaluation.transcript_sha256)),
    of_evaluation("schema_version", |evaluation, line| line.value(evaluation.schema_version)),
];

/// Counts of messages by author type.
pub(super) static COUNTS: [Column; 5] = [
    of_evaluation("customer_messages", |evaluation, line| line.value(evaluation.counts.customer)),
    of_evaluation("ai_messages", |evaluation, line| line.value(evaluation.counts.ai)),
    of_evaluation("human_messages", |evaluation, line| line.value(evaluation.counts.human)),
    of_evaluation("internal_comments", |evaluation, line| line.value(evaluation.counts.comment)),
    of_evaluation("system_events", |evaluation, line| line.value(evaluation.counts.system)),
];
