//! Errors of loading the reader's model.

/// A file cannot be used as the reader's model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// The file is not a model, is damaged, or has no encoder.
    #[error(transparent)]
    Model(#[from] assay_encoder::ModelError),
    /// The metadata cannot be parsed.
    #[error("the header of the model file cannot be read ({0}); fit the model again with this version")]
    Metadata(String),
    /// Fitted for another version of Assay.
    #[error(
        "the model was fitted for features {found}, this version of Assay computes features {expected}; fit it again"
    )]
    Features {
        /// Version of the model.
        found: u32,
        /// Version of this crate.
        expected: u32,
    },
    /// A tensor is missing or has another shape.
    #[error(
        "the tensor {name} of the model file has the shape {found:?}, expected {expected:?}; fit the model again"
    )]
    Tensor {
        /// Name of the tensor.
        name: String,
        /// Required shape.
        expected: Vec<usize>,
        /// Shape in the file; empty if the tensor is missing.
        found: Vec<usize>,
    },
    /// A tensor or table has values out of range.
    #[error("the tensor {0} of the model file holds impossible numbers; fit the model again")]
    Values(String),
}
