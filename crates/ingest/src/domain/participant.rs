//! Display names of the authors in a source system: of each author the latest one is kept.

use std::collections::BTreeMap;

use assay_contracts::conversation::{AuthorType, Conversation};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use sha2::{Digest, Sha256};

/// A display name of an author in a source system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Participant {
    pub organization_id: OrganizationId,
    /// SHA-256 of source, account, author type and external id, which together may exceed the maximum size of an index
    /// entry.
    pub identity: [u8; 32],
    pub source: String,
    pub source_account_id: Option<String>,
    /// Never `mixed`.
    pub author_type: AuthorType,
    pub external_id: String,
    /// Not empty.
    pub name: String,
    /// Timestamp of the message with this name.
    pub named_at: Timestamp,
}

impl Participant {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        let account = self.source_account_id.as_ref().map_or(0, String::len);
        self.source.len() + account + self.external_id.len() + self.name.len()
    }
}

/// The display names in a conversation, one per identity: that of its latest message. Authors without an external id have
/// no identity, `mixed` authors no name.
pub fn participants(organization_id: OrganizationId, conversation: &Conversation) -> Vec<Participant> {
    let named = conversation.messages.iter().filter_map(|message| {
        let (external_id, name) = (message.author.external_id()?, message.author.name()?);
        let author_type = message.author.author_type();
        Some(Participant {
            organization_id,
            identity: identity(conversation, author_type, external_id),
            source: conversation.source.clone(),
            source_account_id: conversation.source_account_id.clone(),
            author_type,
            external_id: external_id.to_owned(),
            name: name.to_owned(),
            named_at: message.timestamp,
        })
    });
    latest_names(named)
}

/// The name with the latest timestamp per identity; among equal timestamps the last one. Ordered by organization and
/// identity, so that all writers lock rows in the same order.
pub fn latest_names(named: impl IntoIterator<Item = Participant>) -> Vec<Participant> {
    let mut latest: BTreeMap<(OrganizationId, [u8; 32]), Participant> = BTreeMap::new();
    for participant in named {
        let key = (participant.organization_id, participant.identity);
        let is_older = latest.get(&key).is_some_and(|known| participant.named_at < known.named_at);
        if !is_older {
            latest.insert(key, participant);
        }
    }
    latest.into_values().collect()
}

fn identity(conversation: &Conversation, author_type: AuthorType, external_id: &str) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // The length prefix keeps adjacent texts apart.
    let mut add = |text: &str| {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    };
    add(author_type.as_str());
    add(&conversation.source);
    add(external_id);
    if let Some(account) = &conversation.source_account_id {
        add(account);
    }
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(head: &str, messages: &str) -> Conversation {
        let body = format!(r#"{{"ticket_id":"T",{head}"messages":[{messages}]}}"#);
        Conversation::parse(body.as_bytes()).unwrap()
    }

    fn message(number: u32, timestamp: i64, author: &str) -> String {
        format!(r#"{{"author":{{{author}}},"content":"x","external_id":"{number}","timestamp":{timestamp}}}"#)
    }

    fn organization() -> OrganizationId {
        uuid::Uuid::nil().into()
    }

    fn names(conversation: &Conversation) -> Vec<String> {
        let mut names: Vec<String> =
            participants(organization(), conversation).into_iter().map(|named| named.name).collect();
        names.sort();
        names
    }

    #[test]
    fn latest_name_of_an_identity_wins_and_missing_names_are_ignored() {
        let messages = [
            message(1, 1, r#""type":"contact","external_id":"c","name":"First""#),
            message(2, 2, r#""type":"contact","external_id":"c","name":"Second""#),
            message(3, 2, r#""type":"contact","external_id":"c","name":"Third""#),
            message(4, 3, r#""type":"contact","external_id":"c""#),
        ];
        assert_eq!(names(&conversation("", &messages.join(","))), ["Third"]);
    }

    #[test]
    fn mixed_authors_and_authors_without_external_id_are_skipped() {
        let messages = [
            message(1, 1, r#""type":"mixed","name":"Several""#),
            message(2, 1, r#""type":"system","name":"Workflow""#),
            message(3, 1, r#""type":"system","external_id":"s","name":"Rule""#),
        ];
        assert_eq!(names(&conversation("", &messages.join(","))), ["Rule"]);
    }

    #[test]
    fn identities_differ_by_type_source_and_account() {
        let contact = message(1, 1, r#""type":"contact","external_id":"x","name":"n""#);
        let teammate = message(1, 1, r#""type":"teammate","external_id":"x","name":"n""#);
        let conversations = [
            conversation("", &contact),
            conversation("", &teammate),
            conversation(r#""source":"zendesk","#, &contact),
            conversation(r#""source_account_id":"a","#, &contact),
            conversation(r#""source":"zendesk","source_account_id":"a","#, &contact),
        ];
        let mut identities: Vec<[u8; 32]> = conversations
            .iter()
            .flat_map(|conversation| participants(organization(), conversation))
            .map(|participant| participant.identity)
            .collect();
        identities.sort_unstable();
        identities.dedup();
        assert_eq!(identities.len(), conversations.len());
    }
}
