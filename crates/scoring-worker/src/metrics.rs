//! Metrics of evaluations, documented in `proto-docs/metrics.md`.

use std::time::Duration;

use assay_contracts::evaluation::EvaluationStatus;
use assay_contracts::event::EvaluationOutcome;
use assay_platform::telemetry::metrics as telemetry;
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};

/// Records how long the built-in scorer took for one conversation.
pub(crate) fn record_scoring_duration(elapsed: Duration) {
    histogram!("assay_scoring_duration_seconds").record(elapsed);
}

/// Counts an evaluation, or a permanent failure of one.
pub(crate) fn count_evaluation(outcome: &EvaluationOutcome) {
    if !telemetry::is_on() {
        return;
    }
    let (status, scorer) = match outcome {
        EvaluationOutcome::Failed { .. } => ("failed", "none"),
        EvaluationOutcome::Evaluated { evaluation } => {
            for flag in &evaluation.flags {
                counter!("assay_evaluation_flags_total", "flag" => flag.as_str()).increment(1);
            }
            let status = match evaluation.status {
                EvaluationStatus::Scored => "scored",
                EvaluationStatus::NotApplicable => "not_applicable",
            };
            (status, evaluation.scorer.kind.as_str())
        }
    };
    counter!("assay_evaluations_total", "status" => status, "scorer" => scorer).increment(1);
}

/// Counts conversations that expired or were given up before they were evaluated.
pub(crate) fn count_failed(conversations: usize) {
    let conversations = u64::try_from(conversations).unwrap_or(u64::MAX);
    counter!("assay_evaluations_total", "status" => "failed", "scorer" => "none").increment(conversations);
}

/// Registers the metrics. Counters that alerts use start at zero, so that `increase()` sees the first event.
pub(crate) fn describe() {
    for (status, scorer) in [("failed", "none"), ("scored", "builtin"), ("scored", "fallback")] {
        counter!("assay_evaluations_total", "status" => status, "scorer" => scorer).increment(0);
    }
    describe_histogram!(
        "assay_scoring_duration_seconds",
        Unit::Seconds,
        "How long the built-in scorer takes for one conversation"
    );
    describe_counter!(
        "assay_evaluations_total",
        Unit::Count,
        "Evaluations that were made; one that could not be stored and is made again counts again"
    );
    describe_counter!(
        "assay_evaluation_flags_total",
        Unit::Count,
        "Flags of evaluations that were made; `JUDGE_DISAGREES` beside evaluations by `judge` says how often the two scorers differ"
    );
}
