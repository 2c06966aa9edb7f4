//! The scoring engine: a conversation in, an evaluation out. Pure, deterministic, no I/O.
//!
//! The pipeline: `transcript` parses the conversation, `reader` (a model fitted on the project's corpus) predicts what
//! each message does and how the conversation went, `course` derives the customer's final state, `handoff` the handoff to
//! a human, `audit` whether the issue was solved and by whom, `reliability` how far to trust the result, and `explanation`
//! adds reasons and quotes.
//!
//! Invariants:
//! - prompt injections are not read, are never evidence in favour, and raise a flag (`injection`);
//! - events and internal comments move neither resolution accuracy nor interaction effort; messages that an AI adds after
//!   its first answer to the customer's last message change no score;
//! - a human who never wrote cannot be the solver; items with several authors do not prove who solved the issue;
//! - a quote is an exact substring; the same transcript and model give the same bytes, on every machine.

#![warn(missing_docs)]

mod audit;
mod course;
mod effort;
mod evaluate;
mod explanation;
mod facts;
mod handoff;
mod injection;
mod language;
mod reader;
mod reliability;
mod second_opinion;
mod sentiment;
mod transcript;
mod weights;
mod word_boundary;

use std::sync::{Arc, OnceLock};

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;
use assay_encoder::Model;

pub use crate::audit::Policy;
pub use crate::facts::hundredths;
use crate::injection::InjectionDetector;
use crate::language::FunctionWords;
use crate::reader::Reader;
pub use crate::reader::{FEATURES_VERSION, ReaderError, ReaderInput};
pub use crate::second_opinion::{Difference, Opinion, RuledResolution, Ruling};
use crate::transcript::Transcript;
pub use crate::weights::{FORMAT as WEIGHTS_FORMAT, INPUTS, LinearModel, Weights, WeightsError};

/// Version of the engine; raised whenever the same transcript may get another evaluation.
pub const SCORER_VERSION: &str = "3.0.0";

/// The model that ships with the crate.
static BUILTIN_MODEL: &[u8] = include_bytes!("../model/reader.bin");

/// A scorer could not be built. Never happens with the model that ships with the crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScorerError {
    /// The model does not fit this version.
    #[error(transparent)]
    Model(#[from] ReaderError),
    /// The list of prompt injections is invalid.
    #[error("the list of prompt injections cannot be used")]
    Injections(#[from] aho_corasick::BuildError),
    /// The weights do not fit this version.
    #[error("the weights file cannot be used: {0}")]
    Weights(#[from] WeightsError),
}

/// The scorer. Cheap to build and to clone: the model and the lists are loaded once and shared between threads.
#[derive(Debug, Clone)]
pub struct Scorer {
    lists: Arc<Lists>,
    reader: Arc<Reader>,
    weights: Option<Weights>,
    weights_sha256: String,
    policy: Policy,
}

/// The parsed lists that ship with the crate.
#[derive(Debug)]
struct Lists {
    injections: InjectionDetector,
    words: FunctionWords,
}

impl Lists {
    /// Parsed at the first call.
    fn builtin() -> Result<Arc<Self>, ScorerError> {
        static LISTS: OnceLock<Arc<Lists>> = OnceLock::new();
        if let Some(lists) = LISTS.get() {
            return Ok(Arc::clone(lists));
        }
        let lists = Self { injections: InjectionDetector::builtin()?, words: FunctionWords::builtin() };
        Ok(Arc::clone(LISTS.get_or_init(|| Arc::new(lists))))
    }
}

/// The model that ships with the crate, read at the first call.
fn builtin_reader() -> Result<Arc<Reader>, ReaderError> {
    static READER: OnceLock<Arc<Reader>> = OnceLock::new();
    if let Some(reader) = READER.get() {
        return Ok(Arc::clone(reader));
    }
    let reader = Reader::new(Model::parse_static(BUILTIN_MODEL)?)?;
    Ok(Arc::clone(READER.get_or_init(|| Arc::new(reader))))
}

impl Scorer {
    /// The scorer with the model that ships with the crate, and the cautious [`Policy`].
    ///
    /// # Errors
    /// Never, with the model and the lists that a release ships.
    pub fn builtin() -> Result<Self, ScorerError> {
        Self::with_reader(builtin_reader()?)
    }

    /// The scorer with a model file, and the cautious [`Policy`].
    ///
    /// # Errors
    /// When the file is damaged, not a model, or of another version.
    pub fn with_model(file: &[u8]) -> Result<Self, ScorerError> {
        let model = Model::parse(file).map_err(ReaderError::from)?;
        Self::with_reader(Arc::new(Reader::new(model)?))
    }

    fn with_reader(reader: Arc<Reader>) -> Result<Self, ScorerError> {
        Ok(Self {
            lists: Lists::builtin()?,
            weights_sha256: reader.sha256().to_owned(),
            reader,
            weights: None,
            policy: Policy::default(),
        })
    }

    /// The same scorer with the content of a weights file.
    ///
    /// # Errors
    /// When the weights are damaged or were fitted for another model.
    pub fn with_weights(self, text: &str) -> Result<Self, ScorerError> {
        let weights = Weights::parse(text, self.reader.sha256())?;
        let weights_sha256 = facts::sha256_of(&[self.reader.sha256(), text]);
        Ok(Self { weights: Some(weights), weights_sha256, ..self })
    }

    /// The same scorer under another policy.
    pub fn with_policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Evaluates a conversation. Pure: the same conversation gives the same evaluation, on every machine.
    pub fn evaluate(&self, conversation: &Conversation) -> Evaluation {
        evaluate::evaluate(self, conversation)
    }

    /// Inputs of [`Weights`]: the three predicted scores, and the probabilities of `resolved` and `not_resolved`.
    pub fn weights_inputs(&self, conversation: &Conversation) -> [f64; INPUTS] {
        self.reader.read(&self.transcript(conversation)).inputs()
    }

    /// SHA-256 of the model and, if set, of the user's weights, as in evaluations.
    pub fn weights_sha256(&self) -> &str {
        &self.weights_sha256
    }

    /// SHA-256 of the model alone.
    pub fn reader_sha256(&self) -> &str {
        self.reader.sha256()
    }

    fn transcript<'a>(&self, conversation: &'a Conversation) -> Transcript<'a> {
        Transcript::read(&self.lists.injections, conversation)
    }
}

/// Extracts the inputs of the models, for training.
pub struct FeatureExtractor {
    encoder: Model,
    lists: Arc<Lists>,
}

impl FeatureExtractor {
    /// Uses the encoder of this model file; the file may lack the reader's heads.
    ///
    /// # Errors
    /// When the file is damaged, not a model, or its encoder has too few positions or ids.
    pub fn new(file: &[u8]) -> Result<Self, ScorerError> {
        let encoder = Model::parse(file).map_err(ReaderError::from)?;
        reader::check_encoder(&encoder)?;
        Ok(Self { encoder, lists: Lists::builtin()? })
    }

    /// The inputs for a conversation.
    pub fn extract(&self, conversation: &Conversation) -> ReaderInput {
        ReaderInput::of(&self.encoder, &Transcript::read(&self.lists.injections, conversation))
    }
}
