//! Errors of reading a model file and of encoding ids.

use crate::forward::Kernel;

/// The bytes are not a model that this crate can run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file does not begin with the magic bytes.
    #[error("this is not a model file: it does not begin with ASSAYENC")]
    NotAModel,
    /// The file was written in another version of the format.
    #[error(
        "the model file has format version {found}, this program reads version {expected}: write it again"
    )]
    FormatVersion {
        /// Version in the file.
        found: u32,
        /// Version that this crate reads.
        expected: u32,
    },
    /// The file ends too early.
    #[error("the model file is truncated: {found} bytes, at least {expected} are needed; copy it again")]
    Truncated {
        /// Bytes that are needed.
        expected: usize,
        /// Bytes in the file.
        found: usize,
    },
    /// The content does not match its SHA-256.
    #[error("the checksum of the model file is wrong: it was damaged; copy it again")]
    Checksum,
    /// The header is not the expected JSON.
    #[error("the header of the model file cannot be read: {0}")]
    Header(String),
    /// A size in the header is outside the limits of the kernels.
    #[error("the header of the model file has {name} = {value}, which must be {rule}")]
    Size {
        /// The field of the header.
        name: &'static str,
        /// Its value.
        value: usize,
        /// The violated rule.
        rule: &'static str,
    },
    /// The header lists a tensor twice.
    #[error("the model file lists the tensor {0} twice")]
    DuplicateTensor(String),
    /// The offset of a tensor is not aligned.
    #[error("the tensor {0} does not begin at a multiple of 64 bytes")]
    Unaligned(String),
    /// A required tensor is missing.
    #[error("the model file has no tensor {0}")]
    MissingTensor(String),
    /// A tensor has the wrong element type.
    #[error("the tensor {name} has numbers of type {found}, expected {expected}")]
    WrongType {
        /// Name of the tensor.
        name: String,
        /// Required element type.
        expected: &'static str,
        /// Element type in the file.
        found: &'static str,
    },
    /// A tensor has the wrong shape.
    #[error("the tensor {name} has the shape {found:?}, expected {expected:?}")]
    WrongShape {
        /// Name of the tensor.
        name: String,
        /// Required shape.
        expected: Vec<usize>,
        /// Shape in the file.
        found: Vec<usize>,
    },
    /// A tensor holds an infinity or a NaN.
    #[error("the tensor {0} holds a number that is not finite")]
    NotFinite(String),
    /// A tensor of the tokenizer is invalid.
    #[error("the tensor {name} is faulty: {reason}")]
    Tokenizer {
        /// Name of the tensor.
        name: &'static str,
        /// The violated rule.
        reason: &'static str,
    },
    /// The requested kernel needs instructions that this processor does not have.
    #[error("this processor has no {0:?} kernel: let Kernel::detect choose one")]
    Kernel(Kernel),
}

/// A list of ids cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// More ids than the model has positions.
    #[error("{found} ids are too many: the model has {limit} positions; cut the text")]
    TooLong {
        /// Number of ids.
        found: usize,
        /// Positions of the model.
        limit: usize,
    },
    /// An id that is not in the vocabulary.
    #[error(
        "the id {id} is not in the vocabulary of {vocabulary}: was it made by the tokenizer of another model?"
    )]
    UnknownId {
        /// The unknown id.
        id: u32,
        /// Size of the vocabulary; valid ids are below it.
        vocabulary: usize,
    },
    /// The segments are not ascending, or do not end with the ids.
    #[error("the ends of the segments must ascend, and the last one must be {length}, the number of ids")]
    Segments {
        /// Number of ids.
        length: usize,
    },
}
