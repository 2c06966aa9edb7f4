//! Typed access to the fields of an event, for CSV columns and for the facts of lists.

use assay_contracts::evaluation::{Axis, Confidence, Dimensions, Evaluation};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome, TicketFacts};

/// The event of one evaluation, successful or failed.
#[derive(Clone, Copy)]
pub struct EventFields<'e> {
    pub event: &'e ConversationEvaluated,
    /// `None` when the evaluation failed.
    pub evaluation: Option<&'e Evaluation>,
}

impl<'e> EventFields<'e> {
    pub fn of(event: &'e ConversationEvaluated) -> Self {
        let evaluation = match &event.outcome {
            EvaluationOutcome::Evaluated { evaluation } => Some(evaluation.as_ref()),
            EvaluationOutcome::Failed { .. } => None,
        };
        Self { event, evaluation }
    }

    pub fn ticket(&self) -> &'e TicketFacts {
        &self.event.ticket
    }

    /// `scored`, `not_applicable` or `failed`.
    pub fn status(&self) -> &'static str {
        self.evaluation.map_or("failed", |evaluation| evaluation.status.as_str())
    }

    /// `None` when AXIS is not applicable.
    pub fn axis(&self) -> Option<&'e Axis> {
        self.evaluation?.axis.as_ref()
    }

    pub fn dimensions(&self) -> Option<&'e Dimensions> {
        self.axis().map(|axis| &axis.dimensions)
    }

    /// The lowest confidence of the three dimensions: AXIS is only as certain as its weakest dimension.
    pub fn lowest_confidence(&self) -> Option<Confidence> {
        let dimensions = self.dimensions()?;
        let all = [
            dimensions.resolution_accuracy.confidence,
            dimensions.interaction_effort.confidence,
            dimensions.handoff_smoothness.confidence,
        ];
        all.into_iter().min()
    }
}

/// Distinct labels of the AI tools, in order of first appearance.
pub(super) fn ai_tools(evaluation: &Evaluation) -> Vec<&'static str> {
    distinct(evaluation.ai_tools.iter().filter_map(|used| used.ai_tool.map(|tool| tool.as_str())))
}

/// Distinct ids of the messages cited by the signals of AXIS: dimension by dimension, in each the strongest signal first.
pub(super) fn axis_message_ids(evaluation: &Evaluation) -> Vec<&str> {
    let signals = evaluation.axis.iter().flat_map(|Axis { dimensions, .. }| {
        [
            &dimensions.resolution_accuracy.signals,
            &dimensions.interaction_effort.signals,
            &dimensions.handoff_smoothness.signals,
        ]
        .into_iter()
        .flatten()
    });
    message_ids_of(evaluation, signals.flat_map(|signal| &signal.evidence))
}

/// The first quote cited by the resolution verdict.
pub(super) fn resolution_quote(evaluation: &Evaluation) -> Option<&str> {
    let first = *evaluation.resolution.evidence.first()?;
    evaluation.evidence.get(first).map(|evidence| evidence.quote.as_str())
}

/// Distinct ids of the messages of these items of evidence.
pub(super) fn message_ids_of<'e>(
    evaluation: &'e Evaluation,
    indices: impl IntoIterator<Item = &'e usize>,
) -> Vec<&'e str> {
    let found = indices.into_iter().filter_map(|index| evaluation.evidence.get(*index));
    distinct(found.map(|evidence| evidence.message_external_id.as_str()))
}

/// A linear search: lists have only a few items.
fn distinct<'t>(items: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut kept = Vec::new();
    for item in items {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    kept
}
