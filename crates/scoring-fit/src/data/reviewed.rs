//! A user's conversations with the labels of their reviewers.

use std::path::Path;

use assay_contracts::conversation::Conversation;

use super::labels::{Label, read_labels};
use super::{DataError, parse_conversations, read};

/// One labelled conversation.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub conversation: Conversation,
    pub label: Label,
}

/// Labelled conversations, and the numbers of unmatched conversations and labels.
#[derive(Debug)]
pub struct ReviewedConversations {
    pub(crate) examples: Vec<Example>,
    /// Conversations without a label.
    pub unlabelled: usize,
    /// Labels without a conversation.
    pub unmatched: usize,
}

impl ReviewedConversations {
    /// Reads request bodies, one per line, and labels, and joins them by `ticket_id`. Of several
    /// conversations with one ticket id the last gets the label; the others count as unlabelled.
    ///
    /// # Errors
    /// When a file cannot be read, or naming the line and the field that is wrong.
    pub fn read(conversations_file: &Path, labels_file: &Path) -> Result<Self, DataError> {
        let mut labels = read_labels(labels_file)?;
        let bytes = read(conversations_file)?;
        let (mut examples, mut unlabelled) = (Vec::new(), 0);
        let mut conversations = parse_conversations(conversations_file, &bytes)?;
        // From the last to the first: the last conversation with a ticket id takes its label.
        conversations.reverse();
        for conversation in conversations {
            match labels.remove(&conversation.ticket_id) {
                Some(label) => examples.push(Example { conversation, label }),
                None => unlabelled += 1,
            }
        }
        examples.reverse();
        Ok(Self { examples, unlabelled, unmatched: labels.len() })
    }

    /// Conversations that have a label.
    pub fn count(&self) -> usize {
        self.examples.len()
    }

    /// The numbers of labelled conversations and of unmatched conversations and labels, as a clause.
    pub(crate) fn counts_text(&self) -> String {
        let mut text = format!("{} labelled conversations", self.examples.len());
        if self.unlabelled > 0 {
            text.push_str(&format!("; conversations without a label: {}", self.unlabelled));
        }
        if self.unmatched > 0 {
            text.push_str(&format!("; labels without a conversation: {}", self.unmatched));
        }
        text
    }
}
