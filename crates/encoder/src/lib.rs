//! A small text encoder: text to tokens, tokens to vectors. Pure, without I/O, the same bytes on every machine.
//!
//! A model file (`file`) holds a tokenizer of the SentencePiece unigram kind (`tokenizer`) and a transformer of the BERT
//! kind (`forward`) whose weights are 8-bit integers with a scale for each output. Other models, say a classifier on
//! top, keep their tensors in the same file.
//!
//! What always holds:
//! - the same model and ids give the same bytes, whatever the processor: integers are multiplied exactly, floating-point
//!   operations run in one fixed order, by operations that IEEE 754 defines (no fused multiply-add, no library's `exp`);
//! - so the choice of [`Kernel`] affects speed, never results;
//! - neither a text nor a list of ids makes it panic, and the tokenizer's time is linear in the length of the text.

#![warn(missing_docs)]

mod error;
mod file;
mod forward;
mod model;
mod tokenizer;
mod workspace;

pub use crate::error::{EncodeError, ModelError};
pub use crate::file::{FORMAT_VERSION, Header};
pub use crate::forward::Kernel;
pub use crate::model::Model;
pub use crate::workspace::Workspace;
