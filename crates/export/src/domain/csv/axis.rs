//! Columns of `axis` files: the three scores with their reasons, and the observations behind them. `axis_band` is the band of
//! `axis_score` if a handoff took place, otherwise of `axis_excluding_handoff`; at best `mixed` if the issue is not resolved.

use super::columns::{COUNTS, Column, PROVENANCE, column, of_axis, of_evaluation};
use super::event_fields::axis_message_ids;

/// The columns after those of the ticket, in order.
pub(super) static AXIS: [&[Column]; 4] = [&SCORES, &COUNTS, &OBSERVATIONS, &PROVENANCE];

static SCORES: [Column; 11] = [
    of_axis("axis_score", |axis, line| line.value(axis.score)),
    of_axis("axis_band", |axis, line| line.value(axis.band.as_str())),
    of_axis("axis_excluding_handoff", |axis, line| line.value(axis.excluding_handoff)),
    of_axis("resolution_accuracy", |axis, line| line.value(axis.dimensions.resolution_accuracy.score)),
    of_axis("resolution_accuracy_reason", |axis, line| {
        line.text(&axis.dimensions.resolution_accuracy.reason)
    }),
    of_axis("interaction_effort", |axis, line| line.value(axis.dimensions.interaction_effort.score)),
    of_axis("interaction_effort_reason", |axis, line| line.text(&axis.dimensions.interaction_effort.reason)),
    of_axis("handoff_smoothness", |axis, line| line.value(axis.dimensions.handoff_smoothness.score)),
    of_axis("handoff_smoothness_reason", |axis, line| line.text(&axis.dimensions.handoff_smoothness.reason)),
    of_evaluation("handoff_state", |evaluation, line| line.value(evaluation.handoff.state.as_str())),
    column("confidence", |fields, line| line.optional(fields.lowest_confidence())),
];

static OBSERVATIONS: [Column; 8] = [
    of_evaluation("customer_sentiment_start", |evaluation, line| {
        line.value(evaluation.sentiment.start.as_str())
    }),
    of_evaluation("customer_sentiment_end", |evaluation, line| line.value(evaluation.sentiment.end.as_str())),
    of_evaluation("repeated_information_count", |evaluation, line| {
        line.value(evaluation.effort.repeated_information)
    }),
    of_evaluation("duration_seconds", |evaluation, line| line.value(evaluation.timeline.duration_seconds)),
    of_evaluation("first_response_seconds", |evaluation, line| {
        line.optional(evaluation.timeline.first_response_seconds)
    }),
    of_evaluation("language", |evaluation, line| line.text(&evaluation.language)),
    of_evaluation("flags", |evaluation, line| line.list(&evaluation.flags)),
    of_evaluation("evidence_message_ids", |evaluation, line| line.list(&axis_message_ids(evaluation))),
];
