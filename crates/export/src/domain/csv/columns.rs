//! A column: its name and how its cell is written. Both are defined together, so that they cannot diverge.

use super::event_fields::EventFields;
use super::line::Line;

/// One column of an exported file.
pub struct Column {
    /// The name in the header.
    pub name: &'static str,
    /// Appends exactly one cell.
    pub write: fn(&EventFields<'_>, &mut Line),
}

/// Shorthand for the tables of columns.
pub(super) const fn column(name: &'static str, write: fn(&EventFields<'_>, &mut Line)) -> Column {
    Column { name, write }
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
    column("conversation_started_at", |fields, line| line.moment(fields.ticket().started_at)),
    column("conversation_ended_at", |fields, line| line.moment(fields.ticket().ended_at)),
    column("imported_at", |fields, line| line.moment(fields.ticket().imported_at)),
    column("evaluated_at", |fields, line| line.moment(fields.event.evaluated_at)),
    column("evaluation_status", |fields, line| line.value(fields.status())),
    column("ai_involvement", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.ai_involvement.as_str()));
    }),
    column("ai_tools", |fields, line| line.list(fields.ai_tools())),
    column("agent_ids", |fields, line| {
        line.list(Some(fields.ticket().agents.iter().map(|agent| agent.id).collect()));
    }),
    column("agent_names", |fields, line| {
        line.list(Some(fields.ticket().agents.iter().map(|agent| agent.name.as_str()).collect()));
    }),
];

/// Provenance of the evaluation.
pub(super) static ORIGIN: [Column; 5] = [
    column("scorer", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.scorer.kind.as_str()));
    }),
    column("scorer_version", |fields, line| {
        line.optional_text(fields.evaluation.map(|evaluation| evaluation.scorer.version.as_str()));
    }),
    column("evaluation_id", |fields, line| line.value(fields.event.evaluation_id)),
    column("transcript_sha256", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| &evaluation.transcript_sha256));
    }),
    column("schema_version", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.schema_version));
    }),
];

/// Counts of messages by author type.
pub(super) static COUNTS: [Column; 5] = [
    column("customer_messages", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.counts.customer));
    }),
    column("ai_messages", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.counts.ai))
    }),
    column("human_messages", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.counts.human));
    }),
    column("internal_comments", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.counts.comment));
    }),
    column("system_events", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.counts.system));
    }),
];
