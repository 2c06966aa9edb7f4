//! Faults of a request body, each with the place it was found at.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// At most so many faults are reported in one answer.
pub const MAX_REPORTED_FAULTS: usize = 20;

/// Ids and names may be so many characters long (Unicode scalar values).
pub const MAX_NAME_CHARS: usize = 1_024;

/// One fault of a request body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fault {
    /// Where: a JSON Pointer (RFC 6901) into the request body, or the name of a query parameter.
    #[schema(example = "/messages/3/author/external_id")]
    pub pointer: String,
    /// What is wrong and what is expected.
    #[schema(example = "must not be empty")]
    pub detail: String,
}

/// Why a body was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BodyError {
    /// Not JSON at all; the text says where and why.
    Malformed(String),
    /// JSON of the wrong shape: at least one and at most [`MAX_REPORTED_FAULTS`] faults.
    Invalid(Vec<Fault>),
}

/// In one line, for people at a terminal: every fault with the place it stands at.
impl fmt::Display for BodyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(detail) => formatter.write_str(detail),
            Self::Invalid(faults) => {
                for (index, fault) in faults.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(formatter, "{separator}{} {}", fault.pointer, fault.detail)?;
                }
                Ok(())
            }
        }
    }
}
