//! Columns of `axis` files: the three scores with their reasons, and the observations behind them. `axis_band` is the band of
//! `axis_score` if a handoff took place, otherwise of `axis_excluding_handoff`; at best `mixed` if the issue is not resolved.

use super::columns::{COUNTS, Column, ORIGIN, column};

/// The columns after those of the ticket, in order.
pub(super) static AXIS: [&[Column]; 4] = [&SCORES, &COUNTS, &OBSERVATIONS, &ORIGIN];

static SCORES: [Column; 11] = [
    column("axis_score", |fields, line| line.score(fields.axis().map(|axis| axis.score))),
    column("axis_band", |fields, line| line.optional(fields.axis().map(|axis| axis.band.as_str()))),
    column("axis_excluding_handoff", |fields, line| {
        line.score(fields.axis().map(|axis| axis.excluding_handoff))
    }),
    column("resolution_accuracy", |fields, line| {
        line.score(fields.dimensions().map(|dimensions| dimensions.resolution_accuracy.score));
    }),
    column("resolution_accuracy_reason", |fields, line| {
        line.optional_text(
            fields.dimensions().map(|dimensions| dimensions.resolution_accuracy.reason.as_str()),
        );
    }),
    column("interaction_effort", |fields, line| {
        line.score(fields.dimensions().map(|dimensions| dimensions.interaction_effort.score));
    }),
    column("interaction_effort_reason", |fields, line| {
        line.optional_text(
            fields.dimensions().map(|dimensions| dimensions.interaction_effort.reason.as_str()),
        );
    }),
    column("handoff_smoothness", |fields, line| {
        line.score(fields.dimensions().map(|dimensions| dimensions.handoff_smoothness.score));
    }),
    column("handoff_smoothness_reason", |fields, line| {
        line.optional_text(
            fields.dimensions().map(|dimensions| dimensions.handoff_smoothness.reason.as_str()),
        );
    }),
    column("handoff_state", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.handoff.state.as_str()));
    }),
    column("confidence", |fields, line| line.confidence(fields.lowest_confidence())),
];

static OBSERVATIONS: [Column; 8] = [
    column("customer_sentiment_start", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.sentiment.start.as_str()));
    }),
    column("customer_sentiment_end", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.sentiment.end.as_str()));
    }),
    column("repeated_information_count", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.effort.repeated_information));
    }),
    column("duration_seconds", |fields, line| {
        line.optional(fields.evaluation.map(|evaluation| evaluation.timeline.duration_seconds));
    }),
    column("first_response_seconds", |fields, line| {
        line.optional(fields.evaluation.and_then(|evaluation| evaluation.timeline.first_response_seconds));
    }),
    column("language", |fields, line| {
        line.optional_text(fields.evaluation.map(|evaluation| evaluation.language.as_str()));
    }),
    column("flags", |fields, line| {
        line.list(fields.evaluation.map(|evaluation| evaluation.flags.clone()));
    }),
    column("evidence_message_ids", |fields, line| line.list(fields.axis_evidence())),
];
