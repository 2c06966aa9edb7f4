//! Columns of `resolution_audit` files, for checking an AI vendor's invoice.

use super::columns::{COUNTS, Column, ORIGIN, column};

/// The columns after those of the ticket, in order.
pub(super) static AUDIT: [&[Column]; 4] = [&VERDICT, &COUNTS, &EVIDENCE, &ORIGIN];

static VERDICT: [Column; 13] = [
    column("resolution_status", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.resolution.status.as_str()));
    }),
    column("resolved_by", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.resolution.resolved_by.as_str()));
    }),
    column("resolution_basis", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.resolution.basis.as_str()));
    }),
    column("resolution_confidence", |facts, line| {
        line.confidence(facts.evaluation.map(|evaluation| evaluation.resolution.confidence));
    }),
    column("resolution_reason", |facts, line| {
        line.optional_text(facts.evaluation.map(|evaluation| evaluation.resolution.reason.as_str()));
    }),
    column("charge_assessment", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.charge.assessment.as_str()));
    }),
    column("charge_reasons", |facts, line| {
        line.list(facts.evaluation.map(|evaluation| evaluation.charge.reasons.clone()));
    }),
    column("handoff_state", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.handoff.state.as_str()));
    }),
    column("handoff_at", |facts, line| {
        line.optional_moment(facts.evaluation.and_then(|evaluation| evaluation.handoff.at));
    }),
    column("first_human_reply_at", |facts, line| {
        line.optional_moment(facts.evaluation.and_then(|evaluation| evaluation.handoff.first_human_reply_at));
    }),
    column("customer_requested_human", |facts, line| line.optional(facts.customer_requested_human())),
    column("customer_confirmed", |facts, line| {
        line.optional(facts.evaluation.map(|evaluation| evaluation.resolution.customer_confirmed));
    }),
    column("customer_replied_after_last_ai", |facts, line| {
        line.optional(
            facts.evaluation.and_then(|evaluation| evaluation.timeline.customer_replied_after_last_ai),
        );
    }),
];

static EVIDENCE: [Column; 6] = [
    column("last_ai_message_at", |facts, line| {
        line.optional_moment(facts.evaluation.and_then(|evaluation| evaluation.timeline.last_ai_message_at));
    }),
    column("last_customer_message_at", |facts, line| {
        line.optional_moment(
            facts.evaluation.and_then(|evaluation| evaluation.timeline.last_customer_message_at),
        );
    }),
    column("observed_silence_hours", |facts, line| {
        line.optional_fraction(
            facts.evaluation.and_then(|evaluation| evaluation.timeline.observed_silence_hours),
        );
    }),
    column("axis_score", |facts, line| line.score(facts.axis().map(|axis| axis.score))),
    column("evidence_message_ids", |facts, line| line.list(facts.resolution_evidence())),
    column("evidence_quote", |facts, line| line.optional_text(facts.resolution_quote())),
];
