//! The scoring engine: a conversation in, an evaluation out. Pure, deterministic, no I/O.
//!
//! A conversation is read once (`transcript`, with the phrases of `lexicon`), the customer is followed to the state
//! in which they end (`customer`), `features` with a fixed sign are scored by a sign-constrained linear model with
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
use sha2::{Digest, Sha256};

pub use crate::audit::Policy;
use crate::customer::CustomerCourse;
use crate::effort::EffortFindings;
use crate::features::{Feature, Observations, extract};
use crate::lexicon::Lexicon;
pub use crate::lexicon::LexiconError;
use crate::model::Weights;
pub use crate::model::WeightsError;
pub use crate::second_opinion::{Contradiction, Opinion, RuledResolution, Ruling};
use crate::transcript::Transcript;

/// Version of the engine; raised whenever the same transcript may get another evaluation.
pub const SCORER_VERSION: &str = "1.0.0";

/// Why a scorer could not be built. With the lists and weights that ship with the crate it always can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The phrase lists are faulty.
    #[error("the phrase lists cannot be used: {0}")]
    Lexicon(#[from] LexiconError),
    /// The weights do not fit this version.
    #[error("the weights cannot be used: {0}")]
    Weights(#[from] WeightsError),
}

/// The built-in scorer. Built once, shared by any number of threads.
#[derive(Debug)]
pub struct Scorer {
    lexicon: Lexicon,
    weights: Weights,
    weights_sha256: String,
    policy: Policy,
}

/// One number that the linear model sees; for fitting weights and for a look under the hood.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureValue {
    /// `subject.view`, as in the weights file.
    pub name: String,
    /// +1 when it may only raise a score, −1 when it may only lower one.
    pub sign: f64,
    /// Not negative.
    pub value: f64,
}

impl Scorer {
    /// The scorer with the lists and weights that ship with the crate, and the cautious [`Policy`].
    pub fn builtin() -> Result<Self, ScorerError> {
        let lexicon = Lexicon::builtin()?;
        let weights = Weights::builtin(&features_of(&lexicon, &empty_conversation()))?;
        let mut hasher = Sha256::new();
        Weights::digest(&mut hasher);
        Lexicon::digest(&mut hasher);
        let weights_sha256 = facts::hex(&hasher.finalize());
        Ok(Self { lexicon, weights, weights_sha256, policy: Policy::default() })
    }

    /// The same scorer under another policy.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Evaluates a conversation. Pure: the same conversation gives the same evaluation, on every machine.
    pub fn evaluate(&self, conversation: &Conversation) -> Evaluation {
        evaluate::evaluate(self, conversation)
    }

    /// The features of a conversation and the name of the state in which its customer ends.
    pub fn features(&self, conversation: &Conversation) -> (Vec<FeatureValue>, &'static str) {
        let transcript = Transcript::read(&self.lexicon, conversation);
        let end = CustomerCourse::of(&transcript).end;
        let values = features_of(&self.lexicon, conversation).into_iter().map(|feature| FeatureValue {
            name: feature.name.to_string(),
            sign: feature.sign.factor(),
            value: feature.value,
        });
        (values.collect(), end.name())
    }
}

fn features_of(lexicon: &Lexicon, conversation: &Conversation) -> Vec<Feature> {
    let transcript = Transcript::read(lexicon, conversation);
    let course = CustomerCourse::of(&transcript);
    let effort = EffortFindings::of(&transcript);
    extract(&Observations { transcript: &transcript, course: &course, effort: &effort })
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
