//! Conversations with their features and labels: what weights are fitted on.

use assay_contracts::conversation::Conversation;
use assay_scoring::FeatureReader;
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
    pub label: Label,
}

impl Example {
    pub(crate) fn new(reader: &FeatureReader, conversation: Conversation, label: Label) -> Self {
        let (features, end) = reader.features(&conversation);
        let features = features.into_iter().map(|feature| feature.value).collect();
        Self { conversation, features, end, label }
    }
}

/// SHA-256 of bytes, lower-case hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
