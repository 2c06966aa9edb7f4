//! Reads what a conversation means, in two steps that were fitted on the project's corpus (`corpus/`).
//!
//! First what each message does (`acts`): whether a customer confirms, rejects or gives up, whether an answer helps or
//! misses the point. A linear model for each act (`acts_model`) sees the message's words and those around it (`grams`).
//! Then what the conversation was like and how it ended: boosted trees (`trees`) see what was done in it, by whom, when
//! and in which order (`course_features`, `structure`).

mod acts;
mod acts_model;
mod course_features;
mod file;
mod grams;
mod steps;
mod structure;
mod trees;
mod view;

use serde::Deserialize;

pub(crate) use self::acts::{Act, MessageActs};
use self::acts_model::ActsModel;
use self::course_features::FEATURES;
pub use self::file::ModelError;
use self::file::ModelFile;
use self::grams::{grams, of_texts, texts, without_last_paragraph};
use self::steps::{Scores, Steps};
use self::structure::{FACTS, Unseen, facts};
use self::trees::Trees;
use self::view::{Placed, all_messages, messages_read};
use crate::adjustment::INPUTS;
use crate::transcript::{Role, Transcript};

/// Version of what is computed of a conversation; a model that was fitted on another one is refused.
pub const FEATURES_VERSION: u32 = 1;
/// Scores, states, solvers.
const OUTPUTS: usize = 3 + 3 + 5;

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
    /// Resolution accuracy, in points, not limited to 1–5.
    pub resolution_accuracy: f64,
    /// Interaction effort, likewise.
    pub interaction_effort: f64,
    /// Handoff smoothness, limited to 1–5.
    pub handoff_smoothness: f64,
    /// Logits of `resolved`, `partial`, `not_resolved`.
    pub status: [f64; 3],
    /// Logits of `ai`, `human`, `customer`, `none`, `unknown`.
    pub solver: [f64; 5],
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
    /// For each of them the hashes of what is seen of it, sorted.
    pub grams: Vec<Vec<u32>>,
    /// The facts of what the customer saw.
    pub facts: Vec<f32>,
    /// The facts with notes and events.
    pub facts_with_unseen: Vec<f32>,
}

impl ReaderInput {
    /// Of a transcript.
    pub(crate) fn of(transcript: &Transcript<'_>) -> Self {
        let read = messages_read(transcript, transcript.items.len());
        let letter = |role: Role| match role {
            Role::Customer => 'C',
            Role::Ai => 'A',
            Role::Human => 'H',
            Role::Mixed | Role::System | Role::Note => 'M',
        };
        Self {
            messages: read.iter().map(|placed| placed.item).collect(),
            roles: read.iter().map(|placed| letter(placed.role)).collect(),
            grams: grams(transcript, &read).into_iter().map(|seen| seen.followed).collect(),
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
    acts: ActsModel,
    trees: Trees,
}

impl Reader {
    /// With the model of this file.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let file = ModelFile::parse(bytes)?;
        let unreadable = |error: serde_json::Error| ModelError::Header(error.to_string());
        let metadata: Metadata = serde_json::from_value(file.header.clone()).map_err(unreadable)?;
        if metadata.features != FEATURES_VERSION {
            return Err(ModelError::Features { found: metadata.features, expected: FEATURES_VERSION });
        }
        let effects = &metadata.effects;
        let tables = [&effects.resolution_accuracy, &effects.interaction_effort];
        if !tables.iter().all(|table| table.last.len() == Act::ALL.len() && table.earlier.len() == Act::ALL.len()) {
            return Err(ModelError::Values("effects"));
        }
        let acts = ActsModel::read(&file)?;
        let trees = Trees::read(&file, FEATURES, OUTPUTS)?;
        Ok(Self { acts, trees, sha256: file.sha256, metadata })
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
        let acts = ActsOfMessages::of(self, transcript);
        let read_acts = acts.of_read(&read);
        let whole = self.outputs(&read, &read_acts, &facts(transcript, &read, Unseen::Counts));
        let seen = self.outputs(&read, &read_acts, &facts(transcript, &read, Unseen::IsLeftOut));
        let steps = Steps { reader: self, transcript, acts: &acts };
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
            resolution_accuracy,
            interaction_effort,
            handoff_smoothness: at(&whole, 2).clamp(1.0, 5.0),
            status: std::array::from_fn(|index| at(&seen, 3 + index)),
            solver: std::array::from_fn(|index| at(&whole, 6 + index)),
        }
    }

    fn outputs(&self, read: &[Placed], acts: &[MessageActs], facts: &[f32; FACTS]) -> Vec<f64> {
        self.trees.outputs(&course_features::features(read, acts, facts))
    }
}

/// What each item does: followed by another message, and as the last one.
struct ActsOfMessages(Vec<(MessageActs, MessageActs)>);

impl ActsOfMessages {
    fn of(reader: &Reader, transcript: &Transcript<'_>) -> Self {
        // Every answer, also those behind the first one to the customer's last message: later steps may read them.
        let read = all_messages(transcript);
        let mut acts = vec![(MessageActs::default(), MessageActs::default()); transcript.items.len()];
        let mut read_texts = texts(transcript, &read);
        for at in 0..read.len() {
            // A last paragraph that takes no stand is a signature or a remark, and is not what the customer ends with.
            if let Some((before, alone)) = without_last_paragraph(transcript, &read, &read_texts, at)
                && read.get(at).is_some_and(|placed| placed.role == Role::Customer)
                && !reader.acts.acts(Role::Customer, &alone.followed).has_any(&Act::STANDS)
                && let Some(text) = read_texts.get_mut(at)
            {
                *text = before;
            }
        }
        for (placed, seen) in read.iter().zip(of_texts(transcript, &read, &read_texts)) {
            if let Some(slot) = acts.get_mut(placed.item) {
                let acts_of = |grams: &[u32]| reader.acts.acts(placed.role, grams);
                *slot = (acts_of(&seen.followed), acts_of(&seen.last));
            }
        }
        Self(acts)
    }

    /// Those of the messages that are read, the last one of which nothing follows.
    fn of_read(&self, read: &[Placed]) -> Vec<MessageActs> {
        let last = read.len().saturating_sub(1);
        let acts = |placed: &Placed| self.0.get(placed.item).copied().unwrap_or_default();
        read.iter().enumerate().map(|(at, placed)| if at == last { acts(placed).1 } else { acts(placed).0 }).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for value in [-30.0, -3.3, -0.1, 0.0, 0.5, 1.0, 10.0, 80.0] {
            let exact = f64::exp(value);
            assert!((exponential(value) - exact).abs() <= 1e-9 * exact, "{value}");
        }
    }
}
