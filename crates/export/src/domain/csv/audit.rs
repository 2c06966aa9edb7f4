//! Columns of `resolution_audit` files, for checking an AI vendor's invoice.

use super::columns::{COUNTS, Column, ORIGIN, column};

/// The columns after those of the ticket, in order.
pub(super) static AUDIT: [&[Column]; 4] = [&VERDICT, &COUNTS, &EVIDENCE, &ORIGIN];

static VERDICT: [Column; 13] = [
    column("resolution_status", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.resolution.status.as_str()));
    }),
    column("resolved_by", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.resolution.resolved_by.as_str()));
    }),
    column("resolution_basis", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.resolution.basis.as_str()));
    }),
    column("resolution_confidence", |fields, line| {
        line.confidence(fields.evaluation.map(|evaluation| evaluation.resolution.confidence));
    }),
    column("resolution_reason", |fields, line| {
        line.optional_text(fields.evaluation.map(|evaluation| evaluation.resolution.reason.as_str()));
    }),
    column("charge_assessment", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.charge.assessment.as_str()));
    }),
    column("charge_reasons", |fields, line| {
        line.list(fields.evaluation.map(|evaluation| evaluation.charge.reasons.clone()));
    }),
    column("handoff_state", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.handoff.state.as_str()));
    }),
    column("handoff_at", |fields, line| {
        line.optional_moment(fields.evaluation.and_then(|evaluation| evaluation.handoff.at));
    }),
    column("first_human_reply_at", |fields, line| {
        line.optional_moment(
            fields.evaluation.and_then(|evaluation| evaluation.handoff.first_human_reply_at),
        );
    }),
    column("customer_requested_human", |fields, line| line.optional(fields.customer_requested_human())),
    column("customer_confirmed", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.resolution.customer_confirmed));
    }),
    column("customer_replied_after_last_ai", |fields, line| {
        line.optional(
            fields.evaluation.and_then(|evaluation| evaluation.timeline.customer_replied_after_last_ai),
        );
    }),
];

static EVIDENCE: [Column; 6] = [
    column("last_ai_message_at", |fields, line| {
        line.optional_moment(fields.evaluation.and_then(|evaluation| evaluation.timeline.last_ai_message_at));
    }),
    column("last_customer_message_at", |fields, line| {
        line.optional_moment(
            fields.evaluation.and_then(|evaluation| evaluation.timeline.last_customer_message_at),
        );
    }),
    column("observed_silence_hours", |fields, line| {
        line.optional_fraction(
            fields.evaluation.and_then(|evaluation| evaluation.timeline.observed_silence_hours),
        );
    }),
    column("axis_score", |fields, line| line.score(fields.axis().map(|axis| axis.score))),
    column("evidence_message_ids", |fields, line| line.list(fields.resolution_evidence())),
    column("evidence_quote", |fields, line| line.optional_text(fields.resolution_quote())),
];
