//! A column: its name and how its cell is written. Both are defined together, so that they cannot diverge.

use super::facts::Facts;
use super::line::Line;

/// One column of an exported file.
pub struct Column {
    /// The name in the header.
    pub name: &'static str,
    /// Appends exactly one cell.
    pub write: fn(&Facts<'_>, &mut Line),
}

/// Shorthand for the tables of columns.
pub(super) const fn column(name: &'static str, write: fn(&Facts<'_>, &mut Line)) -> Column {
    Column { name, write }
}

/// The leading columns of both kinds of file: ticket and status of the evaluation.
pub(super) static TICKET: [Column; 14] = [
    column("ticket_id", |facts, line| line.value(facts.ticket().id)),
    column("external_ticket_id", |facts, line| line.text(&facts.ticket().external_id)),
    column("source", |facts, line| line.text(&facts.ticket().source)),
    column("source_account_id", |facts, line| {
        line.optional_text(facts.ticket().source_account_id.as_deref())
    }),
    column("subject", |facts, line| line.optional_text(facts.ticket().subject.as_deref())),
    column("conversation_started_at", |facts, line| line.moment(facts.ticket().started_at)),
    column("conversation_ended_at", |facts, line| line.moment(facts.ticket().ended_at)),
    column("imported_at", |facts, line| line.moment(facts.ticket().imported_at)),
    column("evaluated_at", |facts, line| line.moment(facts.event.evaluated_at)),
    column("evaluation_status", |facts, line| line.value(facts.status())),
    column("ai_involvement", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.ai_involvement.as_str()));
    }),
    column("ai_tools", |facts, line| line.list(facts.ai_tools())),
    column("agent_ids", |facts, line| {
        line.list(Some(facts.ticket().agents.iter().map(|agent| agent.id).collect()));
    }),
    column("agent_names", |facts, line| {
        line.list(Some(facts.ticket().agents.iter().map(|agent| agent.name.as_str()).collect()));
    }),
];

/// Provenance of the evaluation.
pub(super) static ORIGIN: [Column; 5] = [
    column("scorer", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.scorer.kind.as_str()));
    }),
    column("scorer_version", |facts, line| {
        line.optional_text(facts.evaluation.map(|evaluation| evaluation.scorer.version.as_str()));
    }),
    column("evaluation_id", |facts, line| line.value(facts.event.evaluation_id)),
    column("transcript_sha256", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| &evaluation.transcript_sha256));
    }),
    column("schema_version", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.schema_version));
    }),
];

/// Counts of messages by author type.
pub(super) static COUNTS: [Column; 5] = [
    column("customer_messages", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.counts.customer));
    }),
    column("ai_messages", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.counts.ai))
    }),
    column("human_messages", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.counts.human));
    }),
    column("internal_comments", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.counts.comment));
    }),
    column("system_events", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.counts.system));
    }),
];
