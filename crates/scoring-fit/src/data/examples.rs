//! Conversations with their features and labels: what weights are fitted on.

use assay_contracts::conversation::Conversation;
use assay_scoring::{FeatureReader, Features};
use sha2::{Digest, Sha256};

use super::Label;

/// One labelled conversation.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub conversation: Conversation,
    /// In the order of the reader's features.
    pub features: Vec<f64>,
    /// Name of the state in which the customer ends.
    pub end: &'static str,
    /// How detailed the customer's opening is, 0–1.
    pub detail: f64,
    pub label: Label,
}

impl Example {
    pub(crate) fn new(reader: &FeatureReader, conversation: Conversation, label: Label) -> Self {
        let Features { values, end, detail } = reader.features(&conversation);
        let features = values.into_iter().map(|feature| feature.value).collect();
        Self { conversation, features, end, detail, label }
    }
}

/// SHA-256 of bytes, lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
