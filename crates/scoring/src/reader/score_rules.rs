//! Rules on the scores, applied message by message, whatever the models predict:
//!
//! - a complaint, or a repeated message of the customer, lowers resolution accuracy, a clear complaint to at most 2.5; a confirmation
//!   raises it;
//! - an AI message that neither answers nor carries anything out raises no score: false claims and farewells do not help.
//!
//! Each step compares the conversation up to a message with the conversation before it. Resolution accuracy has a floor
//! above the minimum of the scale. Each complaint or repetition lowers the floor, so that the next one can still lower the score.

use super::Reader;
use super::acts::{Act, MessageActs};
use super::encoding::EncodedMessages;
use super::selection::{SelectedMessage, selected_messages};
use super::structure::{HiddenItems, structural_features};
use crate::transcript::{Item, Role, Transcript};

/// The ends of the scale.
const MIN_SCORE: f64 = 1.0;
const MAX_SCORE: f64 = 5.0;
/// Minimum change by a complaint or a confirmation, in points.
const MIN_CHANGE: f64 = 0.1;
/// Minimum resolution accuracy until the first complaint. Each complaint or repetition lowers this minimum by [`MIN_CHANGE`].
const FLOOR_WITHOUT_COMPLAINT: f64 = 1.6;
/// Minimum probability of a complaint or a confirmation.
const LIKELY: f32 = 0.5;
/// Minimum probability of a clear complaint.
const CLEAR: f32 = 0.9;
/// Maximum resolution accuracy after a clear complaint.
const MAX_AFTER_CLEAR_COMPLAINT: f64 = 2.5;
/// Minimum word overlap of a customer's message that repeats an earlier one.
const REPETITION_OVERLAP: f64 = 0.4;

/// Outputs of the model that the rules use: resolution accuracy and interaction effort, the first two.
const SCORES: usize = 2;

/// The two scores under the rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scores {
    /// In points, 1–5.
    pub resolution_accuracy: f64,
    /// In points, 1–5.
    pub interaction_effort: f64,
}

/// State after a message.
#[derive(Debug, Clone, Copy)]
struct State {
    scores: Scores,
    /// Current minimum of resolution accuracy.
    floor: f64,
}

/// Constraint on the scores by a message.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Constraint {
    /// Resolution accuracy falls, to at most `max`.
    MustFall { max: f64 },
    /// Resolution accuracy rises.
    MustRise,
    /// No score rises.
    MustNotRise,
    /// The scores stay, because none of the step's messages was selected.
    Unchanged,
    /// The prediction counts as it is.
    Free,
}

/// Applies the rules to a conversation.
pub(super) struct ScoreRules<'s, 'a> {
    pub reader: &'s Reader,
    pub transcript: &'s Transcript<'a>,
    pub encoded: &'s EncodedMessages,
}

impl ScoreRules<'_, '_> {
    /// The scores at the end.
    pub(super) fn final_scores(&self) -> Scores {
        let items = &self.transcript.items;
        let is_customer = |item: &Item<'_>| item.role == Role::Customer && !item.is_injection;
        let mut state: Option<State> = None;
        let mut end = 0;
        // A step is one message of the customer, or a run of other items.
        for step in items.chunk_by(|left, right| !is_customer(left) && !is_customer(right)) {
            let start = end;
            end += step.len();
            state = self.step(state, start, end);
        }
        // Without a state no message was selected at all.
        state.map_or_else(|| self.model_scores(&[], FLOOR_WITHOUT_COMPLAINT), |state| state.scores)
    }

    /// The state after the items up to `end`; `None` until a message is selected.
    fn step(&self, before: Option<State>, start: usize, end: usize) -> Option<State> {
        let selection = selected_messages(self.transcript, end);
        if selection.is_empty() {
            return before;
        }
        let Some(State { scores: scores_before, floor }) = before else {
            let scores = self.model_scores(&selection, FLOOR_WITHOUT_COMPLAINT);
            return Some(State { scores, floor: FLOOR_WITHOUT_COMPLAINT });
        };
        let constraint = self.constraint(&selection, start);
        let floor = if matches!(constraint, Constraint::MustFall { .. }) {
            (floor - MIN_CHANGE).max(MIN_SCORE)
        } else {
            floor
        };
        let Scores { resolution_accuracy: accuracy, interaction_effort: effort } =
            self.model_scores(&selection, floor);
        let (accuracy, effort) = match constraint {
            Constraint::MustFall { max } => {
                let lowered = accuracy.min(scores_before.resolution_accuracy - MIN_CHANGE).min(max);
                (lowered.max(floor), effort)
            }
            Constraint::MustRise => {
                (accuracy.max(scores_before.resolution_accuracy + MIN_CHANGE).min(MAX_SCORE), effort)
            }
            Constraint::MustNotRise => (
                accuracy.min(scores_before.resolution_accuracy),
                effort.min(scores_before.interaction_effort),
            ),
            Constraint::Unchanged => return Some(State { scores: scores_before, floor }),
            Constraint::Free => (accuracy, effort),
        };
        Some(State { scores: Scores { resolution_accuracy: accuracy, interaction_effort: effort }, floor })
    }

    /// Predicted scores for the messages, resolution accuracy not below `floor`.
    fn model_scores(&self, selection: &[SelectedMessage], floor: f64) -> Scores {
        let structure = structural_features(self.transcript, selection, HiddenItems::Excluded);
        let outputs = self.reader.predict_outcome(selection, self.encoded, &structure, SCORES);
        let at =
            |index: usize, least| outputs.get(index).copied().unwrap_or(MIN_SCORE).clamp(least, MAX_SCORE);
        Scores { resolution_accuracy: at(0, floor), interaction_effort: at(1, MIN_SCORE) }
    }

    /// Constraint by the messages of the step, which begins at the item `start`.
    fn constraint(&self, selection: &[SelectedMessage], start: usize) -> Constraint {
        let acts = self.encoded.acts(selection);
        let of_step: Vec<(&SelectedMessage, &MessageActs)> =
            selection.iter().zip(&acts).filter(|(selected, _)| selected.item >= start).collect();
        let Some((first, first_acts)) = of_step.first() else { return Constraint::Unchanged };
        if first.role == Role::Customer {
            return self.customer_constraint(first.item, first_acts);
        }
        let helps = |acts: &MessageActs| {
            acts.has_any(&[Act::Answer, Act::CarryOut]) && !acts.has_any(&[Act::Close, Act::ClaimFalsely])
        };
        let may_help =
            |(selected, acts): &(&SelectedMessage, &MessageActs)| selected.role != Role::Ai || helps(acts);
        if of_step.iter().any(may_help) { Constraint::Free } else { Constraint::MustNotRise }
    }

    fn customer_constraint(&self, item: usize, acts: &MessageActs) -> Constraint {
        let complaint = acts.strongest(Act::COMPLAINTS).map_or(0.0, |(_, probability)| probability);
        let confirms = acts.probability(Act::Confirm);
        let repeats = self.transcript.repeats_words(item, REPETITION_OVERLAP) && confirms < LIKELY;
        if repeats || self.transcript.repeats_first_request(item) {
            // No upper limit: it only has to fall.
            return Constraint::MustFall { max: MAX_SCORE };
        }
        if complaint >= LIKELY && complaint >= confirms {
            let max = if complaint >= CLEAR { MAX_AFTER_CLEAR_COMPLAINT } else { MAX_SCORE };
            Constraint::MustFall { max }
        } else if confirms >= LIKELY {
            Constraint::MustRise
        } else {
            Constraint::Free
        }
    }
}
