//! Why a file cannot be used as the reader's model.

/// Why a file cannot be used as the reader's model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReaderError {
    /// The file is no model, is damaged, or has no encoder.
    #[error(transparent)]
    Model(#[from] assay_encoder::ModelError),
    /// What the file says beside its tensors cannot be read.
    #[error("the header of the model file cannot be read ({0}); fit the model again with this version")]
    Metadata(String),
    /// Fitted for another version of Assay.
    #[error(
        "the model was fitted for features {found}, this version of Assay computes features {expected}; fit it again"
    )]
    Features {
        /// As the model says.
        found: u32,
        /// What this version computes.
        expected: u32,
    },
    /// A tensor is missing or has another shape.
    #[error(
        "the tensor {name} of the model file has the shape {found:?}, expected {expected:?}; fit the model again"
    )]
    Tensor {
        /// Of the tensor.
        name: String,
        /// The shape that is needed.
        expected: Vec<usize>,
        /// The shape that is there; empty where the tensor is missing.
        found: Vec<usize>,
    },
    /// A tensor holds something that no fit gives.
    #[error("the tensor {0} of the model file holds impossible numbers; fit the model again")]
    Values(&'static str),
}
