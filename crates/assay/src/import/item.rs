//! One conversation of the input, and why it may be refused.

use std::fmt;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::formats::Request;
use crate::api::Problem;

/// Position of a conversation in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// First line of the conversation or of its page, from 1.
    pub line: u64,
    /// Number within the page, from 1; 0 when the line holds one conversation only.
    pub item: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            0 => write!(formatter, "{}", self.line),
            item => write!(formatter, "{}.{item}", self.line),
        }
    }
}

/// One conversation of the input.
pub struct Item {
    pub position: Position,
    /// Byte offset of the end of its line.
    pub end: u64,
    /// Unchanged from the input.
    pub original: Vec<u8>,
    /// The request, or the reason why there is none.
    pub request: Result<Request, String>,
}

impl Item {
    /// SHA-256 of the original, lower-case hexadecimal.
    pub fn fingerprint(&self) -> String {
        hex::encode(Sha256::digest(&self.original))
    }
}

/// Why an item was refused.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// `None` for an item that was not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Value>,
}

impl Refusal {
    /// For an item that cannot be converted to a request.
    pub fn unmappable(reason: String) -> Self {
        Self { status: None, code: Some("unmappable".to_owned()), detail: Some(reason), errors: None }
    }

    pub fn describe(&self) -> String {
        let status = self.status.map(|status| format!("{status} ")).unwrap_or_default();
        format!("{status}{}", self.detail.as_deref().unwrap_or("without an explanation"))
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self {
            status: Some(problem.status.as_u16()),
            code: problem.code,
            detail: problem.detail,
            errors: problem.errors,
        }
    }
}
