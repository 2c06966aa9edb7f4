//! The scoring engine: a conversation in, an evaluation out. Pure, deterministic, no I/O.
//!
//! A conversation is read once (`transcript`, with the phrases of `lexicon`), the customer is followed to the state
//! in which they end (`customer`), `features` with a fixed sign are scored by linear models and monotone trees under
//! guards (`model`), the passage to a human is judged by rules (`handoff`), the `audit` says whether the issue was
//! solved and by whom, `doubt` says how far to trust all this, and `explanation` finds the words and the quotes.
//!
//! What always holds:
//! - the AI's claim of success never counts as the customer's, and answers behind the customer's last message can
//!   lower a score but not raise it;
//! - text that talks to an evaluator is never evidence in favour and raises a flag;
//! - internal comments show human work and nothing else; items with several actors prove nothing;
//! - a quote is an exact substring; the same transcript and version give the same bytes.

mod answer;
mod audit;
mod customer;
mod doubt;
mod effort;
mod evaluate;
mod explanation;
mod facts;
mod features;
mod handoff;
mod lexicon;
mod model;
mod second_opinion;
mod sentiment;
mod transcript;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;

pub use crate::audit::Policy;
use crate::customer::{CustomerCourse, EndState};
use crate::effort::EffortFindings;
use crate::features::{Feature, Observations, extract};
use crate::lexicon::Lexicon;
pub use crate::lexicon::LexiconError;
pub use crate::model::{BUILTIN_WEIGHTS, TreeError, WeightsError};
use crate::model::{Detail, ModelledDimension, Weights};
pub use crate::second_opinion::{Difference, Opinion, RuledResolution, Ruling};
use crate::transcript::Transcript;
use crate::weights_file::{PerDimension, ResolutionThresholds};

/// Version of the engine; raised whenever the same transcript may get another evaluation.
pub const SCORER_VERSION: &str = "2.0.0";

/// The weights file: what was fitted, and how it is written.
pub mod weights_file {
    pub use crate::model::file::*;
}

/// Why a scorer could not be built. With the lists and weights that ship with the crate it always can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The phrase lists are faulty.
    #[error("the phrase lists cannot be used: {0}")]
    Lexicon(#[from] LexiconError),
    /// The weights do not fit this version.
    #[error("the weights file cannot be used: {0}")]
    Weights(#[from] WeightsError),
}

/// The built-in scorer. Built once, shared by any number of threads.
#[derive(Debug)]
pub struct Scorer {
    reader: FeatureReader,
    weights: Weights,
    policy: Policy,
}

/// Reads features without scoring them: what weights are fitted on. It needs no weights.
#[derive(Debug)]
pub struct FeatureReader {
    lexicon: Lexicon,
}

/// What the models see of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Always the same features in the same order, whatever was said.
    pub values: Vec<FeatureValue>,
    /// Name of the state in which the customer ends.
    pub end: &'static str,
    /// How detailed the customer's opening is, 0–1: the share of the model for described problems in both scores.
    pub detail: f64,
}

/// One number that the models see; for fitting weights and for a look under the hood.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureValue {
    /// `subject.view`, as in the weights file.
    pub name: String,
    /// +1 when it may only raise a score, −1 when it may only lower one.
    pub sign: f64,
    /// Code of the signal that it is reported under.
    pub code: &'static str,
    /// Not negative.
    pub value: f64,
}

impl FeatureReader {
    /// With the lists that ship with the crate.
    pub fn builtin() -> Result<Self, LexiconError> {
        Ok(Self { lexicon: Lexicon::builtin()? })
    }

    /// What the models see of a conversation.
    pub fn features(&self, conversation: &Conversation) -> Features {
        let transcript = self.transcript(conversation);
        let (features, course) = features_of(&transcript);
        let values = features.into_iter().map(|feature| FeatureValue {
            name: feature.name.to_string(),
            sign: feature.sign.factor(),
            code: feature.code,
            value: feature.value,
        });
        Features { values: values.collect(), end: course.end.name(), detail: Detail::of(&transcript).share() }
    }

    /// All features where nothing was observed: their names, signs and codes.
    pub fn feature_list(&self) -> Vec<FeatureValue> {
        self.features(&empty_conversation())
            .values
            .into_iter()
            .map(|feature| FeatureValue { value: 0.0, ..feature })
            .collect()
    }

    /// The names of all states in which a customer can end.
    pub fn end_states() -> impl Iterator<Item = &'static str> {
        EndState::ALL.iter().map(|end| end.name())
    }

    /// Words and pairs of words of a conversation, hashed into 2^`bits` buckets (8–16), ascending, with their values.
    pub fn wording(&self, conversation: &Conversation, bits: u32) -> Vec<(u32, f64)> {
        model::wording(&self.transcript(conversation), bits.clamp(8, 16))
    }

    /// SHA-256 of the phrase lists, as in the weights file.
    pub fn lexicon_sha256() -> String {
        Lexicon::sha256()
    }

    fn transcript<'a>(&self, conversation: &'a Conversation) -> Transcript<'a> {
        Transcript::read(&self.lexicon, conversation)
    }
}

impl Scorer {
    /// The scorer with the lists and weights that ship with the crate, and the cautious [`Policy`].
    pub fn builtin() -> Result<Self, ScorerError> {
        let reader = FeatureReader::builtin()?;
        let weights = Weights::builtin(&features_of(&reader.transcript(&empty_conversation())).0)?;
        Ok(Self { reader, weights, policy: Policy::default() })
    }

    /// A scorer with the weights of the file with this text, and the cautious [`Policy`].
    pub fn fitted(text: &str) -> Result<Self, ScorerError> {
        let reader = FeatureReader::builtin()?;
        let weights = Weights::parse(text, &features_of(&reader.transcript(&empty_conversation())).0)?;
        Ok(Self { reader, weights, policy: Policy::default() })
    }

    /// The same scorer with the weights of the file with this text.
    pub fn with_weights(self, text: &str) -> Result<Self, ScorerError> {
        Ok(Self { policy: self.policy, ..Self::fitted(text)? })
    }

    /// The same scorer under another policy.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Evaluates a conversation. Pure: the same conversation gives the same evaluation, on every machine.
    pub fn evaluate(&self, conversation: &Conversation) -> Evaluation {
        evaluate::evaluate(self, conversation)
    }

    /// What the models say before the guards, in points, not limited to 1–5: resolution accuracy, interaction effort.
    pub fn estimate(&self, conversation: &Conversation) -> PerDimension<f64> {
        let transcript = self.reader.transcript(conversation);
        let seen = self.weights.see(features_of(&transcript).0, &transcript);
        let value = |dimension| self.weights.estimate(dimension, &seen).value;
        PerDimension {
            resolution_accuracy: value(ModelledDimension::ResolutionAccuracy),
            interaction_effort: value(ModelledDimension::InteractionEffort),
        }
    }

    /// What the models see of a conversation.
    pub fn features(&self, conversation: &Conversation) -> Features {
        self.reader.features(conversation)
    }

    /// Where a resolution-accuracy score says that the issue was solved, or not; `None` when it was not fitted.
    pub fn resolution_thresholds(&self) -> Option<ResolutionThresholds> {
        self.weights.resolution_thresholds()
    }

    /// SHA-256 over the weights file and the phrase lists, as in evaluations.
    pub fn weights_sha256(&self) -> &str {
        self.weights.sha256()
    }
}

fn features_of(transcript: &Transcript<'_>) -> (Vec<Feature>, CustomerCourse) {
    let course = CustomerCourse::of(transcript);
    let effort = EffortFindings::of(transcript);
    let features = extract(&Observations { transcript, course: &course, effort: &effort });
    (features, course)
}

/// Features have the same names whatever was said, so nothing at all is enough to learn them.
const fn empty_conversation() -> Conversation {
    Conversation {
        ticket_id: String::new(),
        source: String::new(),
        source_account_id: None,
        subject: None,
        messages: Vec::new(),
    }
}
