//! Why a model cannot be used, and why ids cannot be encoded.

use crate::kernel::Kernel;

/// Why the bytes are not a model that this crate can run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file does not begin with the mark of a model.
    #[error("this is not a model file: it does not begin with ASSAYENC")]
    NotAModel,
    /// The file was written in another version of the format.
    #[error(
        "the model file has format version {found}, this program reads version {expected}: write it again"
    )]
    FormatVersion {
        /// What the file says.
        found: u32,
        /// What this crate reads.
        expected: u32,
    },
    /// The file ends too early.
    #[error("the model file is truncated: {found} bytes, at least {expected} are needed; copy it again")]
    Truncated {
        /// Bytes that are needed.
        expected: usize,
        /// Bytes that are there.
        found: usize,
    },
    /// The bytes are not those that were written.
    #[error("the checksum of the model file is wrong: it was damaged; copy it again")]
    Checksum,
    /// The header cannot be read.
    #[error("the header of the model file cannot be read: {0}")]
    Header(String),
    /// A size in the header does not fit the arithmetic of this crate.
    #[error("the header of the model file has {name} = {value}, which must be {rule}")]
    Size {
        /// The field of the header.
        name: &'static str,
        /// Its value.
        value: usize,
        /// What it must be.
        rule: &'static str,
    },
    /// The header lists a tensor twice.
    #[error("the model file lists the tensor {0} twice")]
    DuplicateTensor(String),
    /// A tensor's place is not aligned.
    #[error("the tensor {0} does not begin at a multiple of 64 bytes")]
    Unaligned(String),
    /// A tensor that the encoder needs is not there.
    #[error("the model file has no tensor {0}")]
    MissingTensor(String),
    /// A tensor has numbers of another type.
    #[error("the tensor {name} has numbers of type {found}, expected {expected}")]
    WrongType {
        /// The tensor.
        name: String,
        /// What is needed.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A tensor has another shape.
    #[error("the tensor {name} has the shape {found:?}, expected {expected:?}")]
    WrongShape {
        /// The tensor.
        name: String,
        /// What is needed.
        expected: Vec<usize>,
        /// What is there.
        found: Vec<usize>,
    },
    /// A tensor holds an infinity or something that is not a number.
    #[error("the tensor {0} holds a number that is not finite")]
    NotFinite(String),
    /// A tensor of the tokenizer breaks a rule of its own.
    #[error("the tensor {name} is faulty: {reason}")]
    Tokenizer {
        /// The tensor.
        name: &'static str,
        /// The rule.
        reason: &'static str,
    },
    /// The kernel that was asked for does not run here.
    #[error("this processor has no {0:?} kernel: let Kernel::detect choose one")]
    Kernel(Kernel),
}

/// Why a list of ids cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// More ids than the model has positions.
    #[error("{found} ids are too many: the model has {limit} positions; cut the text")]
    TooLong {
        /// How many ids there are.
        found: usize,
        /// How many the model takes.
        limit: usize,
    },
    /// An id that is not in the vocabulary.
    #[error(
        "the id {id} is not in the vocabulary of {vocabulary}: was it made by the tokenizer of another model?"
    )]
    UnknownId {
        /// The id.
        id: u32,
        /// How many ids there are in the vocabulary, from 0.
        vocabulary: usize,
    },
    /// The segments are not ascending, or do not end with the ids.
    #[error("the ends of the segments must ascend and the last one be {length}, the number of ids")]
    Segments {
        /// How many ids there are.
        length: usize,
    },
}
