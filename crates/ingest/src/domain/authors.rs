//! Resolves AI authors to registered agents: by id, by external id, or by both, which must then agree.

use std::collections::{HashMap, HashSet};

use assay_contracts::agent::AgentFacts;
use assay_contracts::conversation::{Author, Conversation};
use assay_contracts::ids::AgentId;
use assay_contracts::validation::{FieldError, MAX_REPORTED_ERRORS};

/// An agent as an author refers to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentReference {
    /// The id assigned by the service.
    Id(AgentId),
    /// The id assigned by the caller.
    ExternalId(String),
}

/// The AI authors of a conversation could not be resolved. At most twenty errors are reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnresolvedAuthors {
    /// The organization has no such agent.
    Unknown(Vec<FieldError>),
    /// The id and the external id belong to different agents.
    Mismatch(Vec<FieldError>),
}

/// All agents that a conversation refers to. Ids that are not UUIDs are skipped: no agent has one.
pub fn references(conversation: &Conversation) -> HashSet<AgentReference> {
    let mut references = HashSet::new();
    for message in &conversation.messages {
        let Author::Ai { id, external_id, .. } = &message.author else { continue };
        references.extend(id.as_deref().and_then(reference_by_id));
        references.extend(external_id.clone().map(AgentReference::ExternalId));
    }
    references
}

/// Sets both ids on the AI authors, and returns the agents in order of first appearance.
///
/// # Errors
/// [`UnresolvedAuthors`]: when there are both, unknown agents are reported rather than mismatches, since they may be the
/// cause.
pub fn resolve_authors(
    conversation: &mut Conversation,
    known: &HashMap<AgentReference, AgentFacts>,
) -> Result<Vec<AgentFacts>, UnresolvedAuthors> {
    let mut agents: Vec<AgentFacts> = Vec::new();
    let (mut unknown, mut mismatched) = (Vec::new(), Vec::new());
    for (index, message) in conversation.messages.iter_mut().enumerate() {
        let Author::Ai { id, external_id, .. } = &mut message.author else { continue };
        let pointer = format!("/messages/{index}/author");
        // `Some(None)`: the author has such an id, but there is no agent with it.
        let by_id = id.as_deref().map(|id| reference_by_id(id).and_then(|reference| known.get(&reference)));
        let by_external_id =
            external_id.as_ref().map(|id| known.get(&AgentReference::ExternalId(id.clone())));
        if by_id == Some(None) {
            unknown.push(not_registered(format!("{pointer}/id"), "id"));
        }
        if by_external_id == Some(None) {
            unknown.push(not_registered(format!("{pointer}/external_id"), "external_id"));
        }
        match (by_id.flatten(), by_external_id.flatten()) {
            (Some(one), Some(other)) if one.id != other.id => mismatched.push(mismatch(pointer)),
            (Some(agent), _) | (None, Some(agent)) => {
                *id = Some(agent.id.to_string());
                *external_id = Some(agent.external_id.clone());
                if agents.iter().all(|listed| listed.id != agent.id) {
                    agents.push(agent.clone());
                }
            }
            (None, None) => {}
        }
    }
    unknown.truncate(MAX_REPORTED_ERRORS);
    mismatched.truncate(MAX_REPORTED_ERRORS);
    match (unknown.is_empty(), mismatched.is_empty()) {
        (true, true) => Ok(agents),
        (false, _) => Err(UnresolvedAuthors::Unknown(unknown)),
        (true, false) => Err(UnresolvedAuthors::Mismatch(mismatched)),
    }
}

/// `None` for a text that is not a UUID.
fn reference_by_id(id: &str) -> Option<AgentReference> {
    id.parse().ok().map(AgentReference::Id)
}

fn not_registered(pointer: String, field: &str) -> FieldError {
    let detail = format!("no agent with this {field} is registered: create it with POST /v1/agents");
    FieldError { pointer, detail }
}

fn mismatch(pointer: String) -> FieldError {
    FieldError {
        pointer,
        detail: "id and external_id name two different agents: send one of them".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(number: u128, external_id: &str) -> AgentFacts {
        let id = uuid::Uuid::from_u128(number).into();
        AgentFacts { id, external_id: external_id.to_owned(), name: external_id.to_uppercase() }
    }

    fn known(agents: &[AgentFacts]) -> HashMap<AgentReference, AgentFacts> {
        let by_id = agents.iter().map(|agent| (AgentReference::Id(agent.id), agent.clone()));
        let by_external_id =
            agents.iter().map(|agent| (AgentReference::ExternalId(agent.external_id.clone()), agent.clone()));
        by_id.chain(by_external_id).collect()
    }

    /// A conversation with one message per AI author, each given as its two ids.
    fn conversation(authors: &[(Option<AgentId>, Option<&str>)]) -> Conversation {
        let message = |(index, (id, external_id)): (usize, &(Option<AgentId>, Option<&str>))| {
            let mut author = serde_json::json!({"type": "ai"});
            if let Some(id) = id {
                author["id"] = id.to_string().into();
            }
            if let Some(external_id) = external_id {
                author["external_id"] = (*external_id).into();
            }
            serde_json::json!({"author": author, "content": "x", "external_id": index.to_string(), "timestamp": 1})
        };
        let messages: Vec<_> = authors.iter().enumerate().map(message).collect();
        let body = serde_json::json!({"ticket_id": "T", "messages": messages});
        Conversation::parse(body.to_string().as_bytes()).unwrap()
    }

    fn pointers(errors: &[FieldError]) -> Vec<&str> {
        errors.iter().map(|error| error.pointer.as_str()).collect()
    }

    #[test]
    fn resolved_authors_get_both_ids_and_agents_keep_their_order() {
        let (one, two) = (agent(1, "one"), agent(2, "two"));
        let known = known(&[one.clone(), two.clone()]);
        let mut conversation =
            conversation(&[(None, Some("two")), (Some(one.id), None), (Some(two.id), Some("two"))]);
        assert_eq!(resolve_authors(&mut conversation, &known), Ok(vec![two.clone(), one.clone()]));
        for (message, agent) in conversation.messages.iter().zip([&two, &one, &two]) {
            let Author::Ai { id, external_id, .. } = &message.author else { panic!("not an AI author") };
            assert_eq!(id.as_deref(), Some(agent.id.to_string().as_str()));
            assert_eq!(external_id.as_deref(), Some(agent.external_id.as_str()));
        }
    }

    #[test]
    fn unknown_agents_are_reported_with_their_pointers() {
        let (one, two) = (agent(1, "one"), agent(2, "two"));
        let known = known(std::slice::from_ref(&one));
        let mut conversation = conversation(&[
            (Some(one.id), Some("one")),
            (Some(two.id), None),
            (None, Some("two")),
            (Some(one.id), Some("two")),
        ]);
        let expected =
            ["/messages/1/author/id", "/messages/2/author/external_id", "/messages/3/author/external_id"];
        let Err(UnresolvedAuthors::Unknown(errors)) = resolve_authors(&mut conversation, &known) else {
            panic!("not reported as unknown")
        };
        assert_eq!(pointers(&errors), expected);
    }

    #[test]
    fn ids_of_different_agents_are_a_mismatch() {
        let (one, two) = (agent(1, "one"), agent(2, "two"));
        let mut conversation = conversation(&[(Some(one.id), Some("two"))]);
        match resolve_authors(&mut conversation, &known(&[one, two])) {
            Err(UnresolvedAuthors::Mismatch(errors)) => assert_eq!(pointers(&errors), ["/messages/0/author"]),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn at_most_twenty_errors_are_reported() {
        let mut conversation = conversation(&[(None, Some("unknown")); 30]);
        let unresolved = resolve_authors(&mut conversation, &HashMap::new());
        assert!(matches!(unresolved, Err(UnresolvedAuthors::Unknown(errors)) if errors.len() == 20));
    }
}
