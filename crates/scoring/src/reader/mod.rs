//! Reads what a conversation means, in two steps that were fitted on the project's corpus (`corpus/`).
//!
//! First what each message does (`encoding`): whether a customer confirms, rejects or gives up, whether an answer helps or
//! misses the point. A small transformer reads the messages in order (`layout`); heads over its vectors say what each does,
//! and what the conversation is like so far. Then how the conversation went and how it ended: a linear model (`linear`) sees
//! all of this, and what was done by whom, when and in which order (`course_features`, `structure`).

mod acts;
mod course_features;
mod encoding;
mod error;
mod layout;
mod linear;
mod steps;
mod structure;
mod view;

use crate::adjustment::INPUTS;
use assay_encoder::Model;
use serde::Deserialize;

pub(crate) use self::acts::{Act, MessageActs};
use self::course_features::FEATURES;
pub(crate) use self::encoding::check_encoder;
use self::encoding::{EncodedMessages, MessageReader};
pub use self::error::ReaderError;
use self::layout::{Layout, with_texts};
use self::linear::Linear;
use self::steps::{Scores, Steps};
use self::structure::{FACTS, Unseen, facts};
use self::view::{Placed, messages_read};
use crate::transcript::{Role, Transcript};

/// Version of what is computed of a conversation; a model that was fitted on another one is refused.
pub const FEATURES_VERSION: u32 = 2;
/// Scores, states, solvers, charges.
const OUTPUTS: usize = 3 + 3 + 5 + 4;

/// What the model file says beside its tables.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Metadata {
    features: u32,
    /// From what the model says to how often it is right.
    pub calibration: Calibration,
    /// Points that an act moves a score by, for explanations.
    pub effects: Effects,
}

/// From what the model says to how often it is right, fitted on conversations held back.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Calibration {
    /// The logits of the state are divided by it.
    pub temperature: f64,
    /// Intercept and slope over the state's confidence: share of scores within a point of the readers'.
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

/// What was read of a conversation.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    messages: Vec<MessageActs>,
    /// Indices of the items that were read.
    read: Vec<usize>,
    /// Resolution accuracy, in points, 1–5; an adjusted one may lie outside.
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
    /// What an adjusted score is a sum of.
    pub(crate) fn inputs(&self) -> [f64; INPUTS] {
        let highest = self.status.iter().copied().fold(f64::MIN, f64::max);
        let powers = self.status.map(|logit| exponential(logit - highest));
        let sum: f64 = powers.iter().sum();
        let scores = [self.resolution_accuracy, self.interaction_effort, self.handoff_smoothness];
        [scores[0], scores[1], scores[2], powers[0] / sum, powers[2] / sum]
    }

    /// Whether the item at `index` was read.
    pub(crate) fn has_read(&self, index: usize) -> bool {
        self.read.contains(&index)
    }

    /// What the item at `index` does; nothing where it was not read.
    pub(crate) fn acts(&self, index: usize) -> MessageActs {
        self.messages.get(index).copied().unwrap_or_default()
    }
}

/// A conversation as the models see it, for fitting them.
#[derive(Debug, Clone, PartialEq)]
pub struct ReaderInput {
    /// For each message that is read, its index in the conversation.
    pub messages: Vec<usize>,
    /// For each of them the letter of who speaks: C customer, A AI, H human, M several.
    pub roles: String,
    /// The encoder's ids.
    pub ids: Vec<u32>,
    /// For each message the place of its marker among them.
    pub markers: Vec<usize>,
    /// Where each segment of the ids ends.
    pub segments: Vec<usize>,
    /// The facts of what the customer saw.
    pub facts: Vec<f32>,
    /// The facts with notes and events.
    pub facts_with_unseen: Vec<f32>,
}

impl ReaderInput {
    /// Of a transcript, for this encoder.
    pub(crate) fn of(encoder: &Model, transcript: &Transcript<'_>) -> Self {
        let read = messages_read(transcript, transcript.items.len());
        let Layout { ids, markers, segments } =
            Layout::of(encoder, transcript, &with_texts(transcript, &read));
        let letter = |role: Role| match role {
            Role::Customer => 'C',
            Role::Ai => 'A',
            Role::Human => 'H',
            Role::Mixed | Role::System | Role::Note => 'M',
        };
        Self {
            messages: read.iter().map(|placed| placed.item).collect(),
            roles: read.iter().map(|placed| letter(placed.role)).collect(),
            ids,
            markers,
            segments,
            facts: facts(transcript, &read, Unseen::IsLeftOut).to_vec(),
            facts_with_unseen: facts(transcript, &read, Unseen::Counts).to_vec(),
        }
    }
}

/// Reads conversations.
#[derive(Debug)]
pub(crate) struct Reader {
    metadata: Metadata,
    sha256: String,
    messages: MessageReader,
    outcome: Linear,
}

impl Reader {
    /// With this model.
    pub(crate) fn new(model: Model) -> Result<Self, ReaderError> {
        let unreadable = |error: serde_json::Error| ReaderError::Metadata(error.to_string());
        let metadata: Metadata = serde_json::from_value(model.metadata().clone()).map_err(unreadable)?;
        if metadata.features != FEATURES_VERSION {
            return Err(ReaderError::Features { found: metadata.features, expected: FEATURES_VERSION });
        }
        let effects = &metadata.effects;
        let tables = [&effects.resolution_accuracy, &effects.interaction_effort];
        if !tables
            .iter()
            .all(|table| table.last.len() == Act::ALL.len() && table.earlier.len() == Act::ALL.len())
        {
            return Err(ReaderError::Values("effects"));
        }
        let calibration = &metadata.calibration;
        let lines =
            [calibration.resolution_accuracy, calibration.interaction_effort, calibration.handoff_smoothness];
        if calibration.temperature.is_nan()
            || calibration.temperature <= 0.0
            || !lines.as_flattened().iter().all(|number| number.is_finite())
        {
            return Err(ReaderError::Values("calibration"));
        }
        let outcome = Linear::read(&model, "outcome", FEATURES, OUTPUTS)?;
        Ok(Self {
            outcome,
            sha256: model.sha256().to_owned(),
            metadata,
            messages: MessageReader::new(model)?,
        })
    }

    /// What the model says about itself.
    pub(crate) const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The checksum that names the model.
    pub(crate) fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Reads a conversation. Notes and events count for who solved the issue and how the handoff went, for nothing else.
    pub(crate) fn read(&self, transcript: &Transcript<'_>) -> Reading {
        let read = messages_read(transcript, transcript.items.len());
        let encoded = self.messages.read(transcript);
        let read_acts = encoded.acts(&read);
        let impression = self.messages.impression(&read, &encoded);
        let outputs = |unseen| {
            let facts = facts(transcript, &read, unseen);
            self.outcome(&course_features::features(&read, &read_acts, &facts, &impression))
        };
        let (whole, seen) = (outputs(Unseen::Counts), outputs(Unseen::IsLeftOut));
        let steps = Steps { reader: self, transcript, encoded: &encoded };
        let Scores { resolution_accuracy, interaction_effort } = steps.to_the_end();
        let mut messages = vec![MessageActs::default(); transcript.items.len()];
        for (placed, acts) in read.iter().zip(&read_acts) {
            if let Some(slot) = messages.get_mut(placed.item) {
                *slot = *acts;
            }
        }
        let at = |outputs: &[f64], index: usize| outputs.get(index).copied().unwrap_or(0.0);
        Reading {
            messages,
            read: read.iter().map(|placed| placed.item).collect(),
            resolution_accuracy,
            interaction_effort,
            handoff_smoothness: at(&whole, 2).clamp(1.0, 5.0),
            status: std::array::from_fn(|index| at(&seen, 3 + index)),
            solver: std::array::from_fn(|index| at(&whole, 6 + index)),
            charge: std::array::from_fn(|index| at(&whole, 11 + index)),
        }
    }

    /// What the second step says of the messages `read`.
    fn outputs(&self, read: &[Placed], encoded: &EncodedMessages, facts: &[f32; FACTS]) -> Vec<f64> {
        let impression = self.messages.impression(read, encoded);
        self.outcome(&course_features::features(read, &encoded.acts(read), facts, &impression))
    }

    fn outcome(&self, features: &[f32]) -> Vec<f64> {
        self.outcome.apply(features).into_iter().map(f64::from).collect()
    }
}

/// eˣ by additions and multiplications alone: the library's function differs between processors in the last bit.
pub(crate) fn exponential(value: f64) -> f64 {
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

/// The natural logarithm of a number from 1 to some hundreds, by the exponential above and Halley's method.
pub(crate) fn logarithm(value: f64) -> f64 {
    let mut guess = 0.0;
    for _ in 0..40 {
        let power = exponential(guess);
        guess += 2.0 * (value - power) / (value + power);
    }
    guess
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_library() {
        for value in [1.0, 1.001, 2.0, 2.9, 14.7, 300.0] {
            assert!((logarithm(value) - f64::ln(value)).abs() < 1e-9, "{value}");
        }
    }

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for value in [-30.0, -3.3, -0.1, 0.0, 0.5, 1.0, 10.0, 80.0] {
            let exact = f64::exp(value);
            assert!((exponential(value) - exact).abs() <= 1e-9 * exact, "{value}");
        }
    }
}
