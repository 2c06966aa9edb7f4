//! A scorer that reads what was meant: a conversation in, an evaluation out. Pure, deterministic, no I/O.
//!
//! It is measured beside the engine of `assay_scoring` (`assay benchmark corpus --reader FILE`) and does not score in the
//! service yet: ADR 25 says what it does better, what it does worse, and what has to hold before it takes the engine's
//! place.
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
mod sentiment;
mod transcript;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;

pub use crate::audit::Policy;
use crate::injection::InjectionDetector;
use crate::language::FunctionWords;
use crate::reader::Reader;
pub use crate::reader::{FEATURES_VERSION, ModelError, ReaderInput};
use crate::transcript::Transcript;

/// Version of the engine; raised whenever the same transcript may get another evaluation.
pub const SCORER_VERSION: &str = "3.0.0";

/// Why a scorer could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The model does not fit this version.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The list of phrases that talk to an evaluator is faulty.
    #[error("the list of phrases for evaluators cannot be used")]
    Injections(#[from] aho_corasick::BuildError),
}

/// The scorer. Built once, shared by any number of threads.
#[derive(Debug)]
pub struct Scorer {
    injections: InjectionDetector,
    words: FunctionWords,
    reader: Reader,
    policy: Policy,
}

impl Scorer {
    /// The scorer with the model of this file, and the cautious [`Policy`].
    pub fn with_model(file: &[u8]) -> Result<Self, ScorerError> {
        let reader = Reader::parse(file)?;
        Ok(Self {
            injections: InjectionDetector::builtin()?,
            words: FunctionWords::builtin(),
            reader,
            policy: Policy::default(),
        })
    }

    /// The same scorer under another policy.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Evaluates a conversation. Pure: the same conversation gives the same evaluation, on every machine.
    pub fn evaluate(&self, conversation: &Conversation) -> Evaluation {
        evaluate::evaluate(self, conversation)
    }

    /// SHA-256 of the model, as in evaluations.
    pub fn model_sha256(&self) -> &str {
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
