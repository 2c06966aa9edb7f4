//! The reader: predicts what messages do and how a conversation went, in two steps fitted on the project's corpus
//! (`corpus/`).
//!
//! Step 1 (`encoding`): a small transformer encodes the messages in order (`layout`); heads over its vectors predict the
//! acts of each message (confirms, rejects, helps, misses the point, …) and an impression of the conversation so far.
//! Step 2 (`linear`, `trees`): linear models and boosted trees together predict scores and verdicts from the acts, the impression, and
//! who did what when and in which order (`course_features`, `structure`). `score_rules` constrains the scores message by message.

mod acts;
mod course_features;
mod encoding;
mod error;
mod layout;
mod linear;
mod score_rules;
mod selection;
mod structure;
mod trees;

use crate::weights::INPUTS;
use assay_encoder::Model;
use serde::Deserialize;

pub(crate) use self::acts::{Act, MessageActs};
use self::course_features::FEATURES;
pub(crate) use self::encoding::check_encoder;
use self::encoding::{EncodedMessages, MessageReader};
pub use self::error::ReaderError;
use self::layout::{Layout, with_texts};
use self::linear::Linear;
use self::score_rules::{ScoreRules, Scores};
use self::selection::{SelectedMessage, selected_messages};
use self::structure::{HiddenItems, STRUCTURAL_FEATURES, structural_features};
use self::trees::Trees;
use crate::transcript::{Role, Transcript};

/// Version of the features; a model fitted on another version is refused.
pub const FEATURES_VERSION: u32 = 3;
/// Outputs of step 2: three scores, then logits of three statuses, five solvers and four charges.
const OUTPUTS: usize = 3 + 3 + 5 + 4;

/// Metadata of the model file.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Metadata {
    features: u32,
    /// Calibration of confidences.
    pub calibration: Calibration,
    /// Effects of acts on scores, for explanations.
    pub effects: Effects,
}

/// Calibration of confidences, fitted on held-out conversations.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Calibration {
    /// Temperature of the status logits.
    pub temperature: f64,
    /// Platt scaling, `[intercept, slope]`: logit P(score within one point of the raters' score) = intercept + slope ×
    /// certainty of the status.
    pub resolution_accuracy: [f64; 2],
    /// The same for interaction effort.
    pub interaction_effort: [f64; 2],
    /// The same for handoff smoothness.
    pub handoff_smoothness: [f64; 2],
}

/// Effects of acts by score, in the order of [`Act::ALL`].
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Effects {
    pub resolution_accuracy: ActEffects,
    pub interaction_effort: ActEffects,
}

/// Effects of acts on one score, in points.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ActEffects {
    /// From the customer's last message on.
    pub last: Vec<f64>,
    /// Before it.
    pub earlier: Vec<f64>,
}

/// Predictions for a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    acts_by_item: Vec<MessageActs>,
    /// Indices of the items that the reader saw.
    selected_items: Vec<usize>,
    /// Resolution accuracy, in points, 1–5; with a user's weights it may lie outside.
    pub resolution_accuracy: f64,
    /// Interaction effort, likewise.
    pub interaction_effort: f64,
    /// Handoff smoothness, limited to 1–5.
    pub handoff_smoothness: f64,
    /// Logits of `resolved`, `partial`, `not_resolved`.
    pub status: [f64; 3],
    /// Logits of `ai`, `human`, `customer`, `none`, `unknown`.
    pub solver: [f64; 5],
    /// Logits of `supported`, `review`, `disputed`, `not_applicable`.
    pub charge: [f64; 4],
}

impl Reading {
    /// Inputs of [`Weights`](crate::Weights).
    pub(crate) fn inputs(&self) -> [f64; INPUTS] {
        let highest = self.status.iter().copied().fold(f64::MIN, f64::max);
        let powers = self.status.map(|logit| exp(logit - highest));
        let sum: f64 = powers.iter().sum();
        let scores = [self.resolution_accuracy, self.interaction_effort, self.handoff_smoothness];
        [scores[0], scores[1], scores[2], powers[0] / sum, powers[2] / sum]
    }

    /// Whether the reader saw the item at `index`.
    pub(crate) fn has_read(&self, index: usize) -> bool {
        self.selected_items.contains(&index)
    }

    /// Acts of the item at `index`; none if the reader did not see it.
    pub(crate) fn acts(&self, index: usize) -> MessageActs {
        self.acts_by_item.get(index).copied().unwrap_or_default()
    }
}

/// Inputs of the models for one conversation, for training.
#[derive(Debug, Clone, PartialEq)]
pub struct ReaderInput {
    /// Indices of the selected messages in the conversation.
    pub messages: Vec<usize>,
    /// Role of each selected message: C customer, A AI, H human, M several.
    pub roles: String,
    /// Token ids of the encoder's input.
    pub ids: Vec<u32>,
    /// Position of the marker of each message.
    pub markers: Vec<usize>,
    /// End of each segment.
    pub segment_ends: Vec<usize>,
    /// Structural features without notes and events.
    pub structure: Vec<f32>,
    /// Structural features with notes and events.
    pub structure_with_hidden: Vec<f32>,
}

impl ReaderInput {
    /// The inputs for a transcript.
    pub(crate) fn of(encoder: &Model, transcript: &Transcript<'_>) -> Self {
        let selection = selected_messages(transcript, transcript.items.len());
        let Layout { ids, markers, segment_ends } =
            Layout::of(encoder, transcript, &with_texts(transcript, &selection));
        let letter = |role: Role| match role {
            Role::Customer => 'C',
            Role::Ai => 'A',
            Role::Human => 'H',
            Role::Mixed | Role::System | Role::Note => 'M',
        };
        Self {
            messages: selection.iter().map(|selected| selected.item).collect(),
            roles: selection.iter().map(|selected| letter(selected.role)).collect(),
            ids,
            markers,
            segment_ends,
            structure: structural_features(transcript, &selection, HiddenItems::Excluded).to_vec(),
            structure_with_hidden: structural_features(transcript, &selection, HiddenItems::Included)
                .to_vec(),
        }
    }
}

/// The two-step model.
#[derive(Debug)]
pub(crate) struct Reader {
    metadata: Metadata,
    sha256: String,
    message_reader: MessageReader,
    /// An output is the sum of this and the leaves of its trees.
    linear: Linear,
    trees: Trees,
}

impl Reader {
    /// Loads the heads and the models of step 2.
    pub(crate) fn new(model: Model) -> Result<Self, ReaderError> {
        let unreadable = |error: serde_json::Error| ReaderError::Metadata(error.to_string());
        let metadata: Metadata =
            serde_json::from_value(model.header().metadata.clone()).map_err(unreadable)?;
        if metadata.features != FEATURES_VERSION {
            return Err(ReaderError::Features { found: metadata.features, expected: FEATURES_VERSION });
        }
        let effects = &metadata.effects;
        let tables = [&effects.resolution_accuracy, &effects.interaction_effort];
        if !tables
            .iter()
            .all(|table| table.last.len() == Act::ALL.len() && table.earlier.len() == Act::ALL.len())
        {
            return Err(ReaderError::Values("effects".to_owned()));
        }
        let calibration = &metadata.calibration;
        let platt_scalings =
            [calibration.resolution_accuracy, calibration.interaction_effort, calibration.handoff_smoothness];
        if calibration.temperature.is_nan()
            || calibration.temperature <= 0.0
            || !platt_scalings.as_flattened().iter().all(|number| number.is_finite())
        {
            return Err(ReaderError::Values("calibration".to_owned()));
        }
        Ok(Self {
            linear: Linear::read(&model, "outcome", FEATURES, OUTPUTS)?,
            trees: Trees::read(&model, "outcome", FEATURES, OUTPUTS)?,
            sha256: model.sha256().to_owned(),
            metadata,
            message_reader: MessageReader::new(model)?,
        })
    }

    /// Metadata of the model.
    pub(crate) const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// SHA-256 of the model.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Predicts everything for a conversation. Notes and events affect only the solver, the charge and handoff smoothness.
    pub(crate) fn read(&self, transcript: &Transcript<'_>) -> Reading {
        let selection = selected_messages(transcript, transcript.items.len());
        let encoded = self.message_reader.read(transcript);
        let selected_acts = encoded.acts(&selection);
        let impression = self.message_reader.impression(&selection, &encoded);
        let outputs = |hidden_items| {
            let structure = structural_features(transcript, &selection, hidden_items);
            self.outcome(
                &course_features::features(&selection, &selected_acts, &structure, &impression),
                OUTPUTS,
            )
        };
        let (with_hidden, without_hidden) = (outputs(HiddenItems::Included), outputs(HiddenItems::Excluded));
        let rules = ScoreRules { reader: self, transcript, encoded: &encoded };
        let Scores { resolution_accuracy, interaction_effort } = rules.final_scores();
        let mut acts_by_item = vec![MessageActs::default(); transcript.items.len()];
        for (selected, acts) in selection.iter().zip(&selected_acts) {
            if let Some(slot) = acts_by_item.get_mut(selected.item) {
                *slot = *acts;
            }
        }
        // The indices below are positions in the outputs, whose order is that of `OUTPUTS`.
        let at = |outputs: &[f64], index: usize| outputs.get(index).copied().unwrap_or(0.0);
        Reading {
            acts_by_item,
            selected_items: selection.iter().map(|selected| selected.item).collect(),
            resolution_accuracy,
            interaction_effort,
            handoff_smoothness: at(&with_hidden, 2).clamp(1.0, 5.0),
            status: std::array::from_fn(|index| at(&without_hidden, 3 + index)),
            solver: std::array::from_fn(|index| at(&with_hidden, 6 + index)),
            charge: std::array::from_fn(|index| at(&with_hidden, 11 + index)),
        }
    }

    /// The first `count` outputs of step 2 for the selected messages, which may be only the beginning of the conversation.
    fn predict_outcome(
        &self,
        selection: &[SelectedMessage],
        encoded: &EncodedMessages,
        structure: &[f32; STRUCTURAL_FEATURES],
        count: usize,
    ) -> Vec<f64> {
        let impression = self.message_reader.impression(selection, encoded);
        let features = course_features::features(selection, &encoded.acts(selection), structure, &impression);
        self.outcome(&features, count)
    }

    /// The first `count` outputs; trees of the others are not evaluated.
    fn outcome(&self, features: &[f32], count: usize) -> Vec<f64> {
        let linear = self.linear.apply(features);
        let mut outputs: Vec<f64> = linear.into_iter().take(count).map(f64::from).collect();
        self.trees.add_to(&mut outputs, features);
        outputs
    }
}

/// A tensor of 32-bit numbers of the model file, with this shape.
fn tensor<'m>(model: &'m Model, name: &str, expected: &[usize]) -> Result<&'m [f32], ReaderError> {
    let found = model.tensor_shape(name).unwrap_or_default();
    match model.tensor_f32(name) {
        Some(values) if found == expected => Ok(values),
        _ => Err(ReaderError::Tensor {
            name: name.to_owned(),
            expected: expected.to_vec(),
            found: found.to_vec(),
        }),
    }
}

/// eˣ by basic arithmetic only: the library's function differs between processors in the last bit. The Taylor series of
/// x / 2¹⁰, squared ten times.
pub(crate) fn exp(value: f64) -> f64 {
    let halvings = 10;
    let small = value.clamp(-700.0, 700.0) / f64::from(1 << halvings);
    let (mut power, mut term) = (1.0, 1.0);
    for step in 1..12 {
        term *= small / f64::from(step);
        power += term;
    }
    for _ in 0..halvings {
        power *= power;
    }
    power
}

/// The natural logarithm of a number from 1 to some hundreds, by [`exp`] and Halley's method.
pub(crate) fn ln(value: f64) -> f64 {
    let mut guess = 0.0;
    for _ in 0..40 {
        let power = exp(guess);
        guess += 2.0 * (value - power) / (value + power);
    }
    guess
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ln_matches_std() {
        for value in [1.0, 1.001, 2.0, 2.9, 14.7, 300.0] {
            assert!((ln(value) - f64::ln(value)).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn exp_matches_std() {
        for value in [-30.0, -3.3, -0.1, 0.0, 0.5, 1.0, 10.0, 80.0] {
            let exact = f64::exp(value);
            assert!((exp(value) - exact).abs() <= 1e-9 * exact, "{value}");
        }
    }
}
