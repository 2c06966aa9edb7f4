//! A small text encoder: text to tokens, tokens to vectors. Pure, without I/O, the same bytes on every machine.
//!
//! A model file (`file`) has a SentencePiece unigram tokenizer (`tokenizer`) and a BERT transformer (`forward`) whose
//! weights are 8-bit integers with a scale for each output. It may have tensors of other models, too, such as a classifier
//! that uses the vectors.
//!
//! Invariants:
//! - the same model and ids give the same bytes on every processor: integers are multiplied exactly, floating-point
//!   operations run in one fixed order, by operations that IEEE 754 defines (no fused multiply-add, no library's `exp`);
//! - the choice of [`Kernel`] affects speed, never results;
//! - no text and no list of ids causes a panic, and the tokenizer's time is linear in the length of the text.

#![warn(missing_docs)]

mod error;
mod file;
mod forward;
mod lanes;
mod model;
mod tokenizer;
mod workspace;

pub use crate::error::{EncodeError, ModelError};
pub use crate::file::{FORMAT_VERSION, Header};
pub use crate::forward::Kernel;
pub use crate::model::Model;
pub use crate::workspace::Workspace;
