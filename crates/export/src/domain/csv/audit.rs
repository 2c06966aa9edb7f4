//! Columns of `resolution_audit` files, for checking an AI vendor's invoice.

use assay_contracts::evaluation::HandoffRequester;

use super::columns::{COUNTS, Column, PROVENANCE, of_axis, of_evaluation};
use super::event_fields::{message_ids_of, resolution_quote};

/// The columns after those of the ticket, in order.
pub(super) static AUDIT: [&[Column]; 4] = [&VERDICT, &COUNTS, &EVIDENCE, &PROVENANCE];

static VERDICT: [Column; 13] = [
    of_evaluation("resolution_status", |evaluation, line| line.value(evaluation.resolution.status.as_str())),
    of_evaluation("resolved_by", |evaluation, line| line.value(evaluation.resolution.resolved_by.as_str())),
    of_evaluation("resolution_basis", |evaluation, line| line.value(evaluation.resolution.basis.as_str())),
    of_evaluation("resolution_confidence", |evaluation, line| line.value(evaluation.resolution.confidence)),
    of_evaluation("resolution_reason", |evaluation, line| line.text(&evaluation.resolution.reason)),
    of_evaluation("charge_assessment", |evaluation, line| line.value(evaluation.charge.assessment.as_str())),
    of_evaluation("charge_reasons", |evaluation, line| line.list(&evaluation.charge.reasons)),
    of_evaluation("handoff_state", |evaluation, line| line.value(evaluation.handoff.state.as_str())),
    of_evaluation("handoff_at", |evaluation, line| line.optional(evaluation.handoff.at)),
    of_evaluation("first_human_reply_at", |evaluation, line| {
        line.optional(evaluation.handoff.first_human_reply_at)
    }),
    of_evaluation("customer_requested_human", |evaluation, line| {
        line.value(evaluation.handoff.requested_by == Some(HandoffRequester::Customer))
    }),
    of_evaluation("customer_confirmed", |evaluation, line| {
        line.value(evaluation.resolution.customer_confirmed)
    }),
    of_evaluation("customer_replied_after_last_ai", |evaluation, line| {
        line.optional(evaluation.timeline.customer_replied_after_last_ai)
    }),
];

static EVIDENCE: [Column; 6] = [
    of_evaluation("last_ai_message_at", |evaluation, line| {
        line.optional(evaluation.timeline.last_ai_message_at)
    }),
    of_evaluation("last_customer_message_at", |evaluation, line| {
        line.optional(evaluation.timeline.last_customer_message_at)
    }),
    of_evaluation("observed_silence_hours", |evaluation, line| {
        line.optional_fraction(evaluation.timeline.observed_silence_hours)
    }),
    of_axis("axis_score", |axis, line| line.value(axis.score)),
    of_evaluation("evidence_message_ids", |evaluation, line| {
        line.list(&message_ids_of(evaluation, &evaluation.resolution.evidence))
    }),
    of_evaluation("evidence_quote", |evaluation, line| line.optional_text(resolution_quote(evaluation))),
];
