//! The scoring engine: a conversation in, an evaluation out. Pure, deterministic, no I/O.
//!
//! A conversation is taken apart (`transcript`), read by a model that was fitted on the project's corpus (`reader`), the
//! customer is followed to the state in which they end (`course`), the passage to a human is traced (`handoff`), the
//! `audit` says whether the issue was solved and by whom, `doubt` says how far to trust all this, and `explanation`
//! finds the words and the quotes.
//!
//! What always holds:
//! - text that talks to an evaluator is not read, never evidence in favour, and raises a flag (`injection`);
//! - events and internal comments move neither resolution accuracy nor interaction effort; what an AI adds behind its
//!   first answer to the customer's last message moves nothing;
//! - a human who never wrote solved nothing; items with several actors prove nothing about who did;
//! - a quote is an exact substring; the same transcript and model give the same bytes, on every machine.

mod adjustment;
mod audit;
mod course;
mod doubt;
mod effort;
mod evaluate;
mod explanation;
mod facts;
mod handoff;
mod injection;
mod language;
mod reader;
mod second_opinion;
mod sentiment;
mod transcript;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;

pub use crate::adjustment::{Adjustment, AdjustmentError, FORMAT as ADJUSTMENT_FORMAT, INPUTS, Line};
pub use crate::audit::Policy;
use crate::injection::InjectionDetector;
use crate::language::FunctionWords;
use crate::reader::Reader;
pub use crate::reader::{FEATURES_VERSION, ModelError, ReaderInput};
pub use crate::second_opinion::{Difference, Opinion, RuledResolution, Ruling};
use crate::transcript::Transcript;

/// Version of the engine; raised whenever the same transcript may get another evaluation.
pub const SCORER_VERSION: &str = "3.0.0";

/// The model that ships with the crate.
static BUILTIN_MODEL: &[u8] = include_bytes!("../model/reader.bin");

/// Why a scorer could not be built. With the model that ships with the crate it always can.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The model does not fit this version.
    #[error("the reader's model cannot be used: {0}")]
    Model(#[from] ModelError),
    /// The list of phrases that talk to an evaluator is faulty.
    #[error("the list of phrases for evaluators cannot be used: {0}")]
    Injections(#[from] aho_corasick::BuildError),
    /// The weights do not fit this version.
    #[error("the weights file cannot be used: {0}")]
    Weights(#[from] AdjustmentError),
}

/// The built-in scorer. Built once, shared by any number of threads.
#[derive(Debug)]
pub struct Scorer {
    injections: InjectionDetector,
    words: FunctionWords,
    reader: Reader,
    adjustment: Option<Adjustment>,
    weights_sha256: String,
    policy: Policy,
}

impl Scorer {
    /// The scorer with the model that ships with the crate, and the cautious [`Policy`].
    pub fn builtin() -> Result<Self, ScorerError> {
        Self::with_model(BUILTIN_MODEL)
    }

    /// The scorer with the model of this file, and the cautious [`Policy`].
    pub fn with_model(file: &[u8]) -> Result<Self, ScorerError> {
        let reader = Reader::parse(file)?;
        Ok(Self {
            injections: InjectionDetector::builtin()?,
            words: FunctionWords::builtin(),
            weights_sha256: reader.sha256().to_owned(),
            reader,
            adjustment: None,
            policy: Policy::default(),
        })
    }

    /// A scorer with the built-in model and the weights of the file with this text, and the cautious [`Policy`].
    pub fn fitted(text: &str) -> Result<Self, ScorerError> {
        Self::builtin()?.with_weights(text)
    }

    /// The same scorer with the weights of the file with this text.
    pub fn with_weights(self, text: &str) -> Result<Self, ScorerError> {
        let adjustment = Adjustment::parse(text, self.reader.sha256())?;
        let weights_sha256 = facts::sha256_of(&[self.reader.sha256(), text]);
        Ok(Self { adjustment: Some(adjustment), weights_sha256, ..self })
    }

    /// The same scorer under another policy.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Evaluates a conversation. Pure: the same conversation gives the same evaluation, on every machine.
    pub fn evaluate(&self, conversation: &Conversation) -> Evaluation {
        evaluate::evaluate(self, conversation)
    }

    /// What an adjustment is fitted on: the three scores as read, and the probabilities that the issue was solved, and
    /// that it was not.
    pub fn adjustment_inputs(&self, conversation: &Conversation) -> [f64; INPUTS] {
        self.reader.read(&self.transcript(conversation)).inputs()
    }

    /// SHA-256 of the model and, where there are any, of the user's weights, as in evaluations.
    pub fn weights_sha256(&self) -> &str {
        &self.weights_sha256
    }

    /// SHA-256 of the model alone.
    pub fn reader_sha256(&self) -> &str {
        self.reader.sha256()
    }

    fn transcript<'a>(&self, conversation: &'a Conversation) -> Transcript<'a> {
        Transcript::read(&self.injections, &self.words, conversation)
    }
}

/// A conversation as the models see it, for fitting them.
pub fn reader_input(conversation: &Conversation) -> Result<ReaderInput, ScorerError> {
    let injections = InjectionDetector::builtin()?;
    Ok(ReaderInput::of(&Transcript::read(&injections, &FunctionWords::builtin(), conversation)))
}
