//! Builders of conversation bodies.

use serde_json::{Value, json};

/// Timestamp of the first message, epoch milliseconds: 2025-11-20T00:53:20.000Z.
const STARTED_AT: i64 = 1_763_600_000_000;

/// A valid conversation of a customer and a human: three messages, no agent needed.
pub fn conversation(ticket_id: &str) -> Value {
    let ann = json!({"type": "contact", "external_id": "ann", "name": "Ann"});
    let bob = json!({"type": "teammate", "external_id": "bob", "name": "Bob"});
    json!({
        "ticket_id": ticket_id,
        "subject": "Where is my refund?",
        "messages": [
            message(0, &ann, "Where is my refund?"),
            message(1, &bob, "It was sent today and arrives by Friday."),
            message(2, &ann, "Great, thank you!"),
        ],
    })
}

/// The same with an AI agent, which must be registered, in the place of the human.
pub fn by_ai(ticket_id: &str, agent: &str) -> Value {
    edited(conversation(ticket_id), &[set("/messages/1/author", json!({"type": "ai", "external_id": agent}))])
}

/// A conversation that an AI agent, which must be registered, resolves.
pub fn resolved_by(ticket_id: &str, agent: &str) -> Value {
    let ann = json!({"type": "contact", "external_id": "ann"});
    let bot = json!({"type": "ai", "external_id": agent});
    json!({"ticket_id": ticket_id, "messages": [
        message(0, &ann, "Please cancel order 5521."),
        message(1, &bot, "I have cancelled order 5521, the money is on its way."),
        message(2, &ann, "Perfect, that solved it. Thank you!"),
    ]})
}

/// A message with the external id `m-NUMBER`, `number` minutes after the first one.
pub fn message(number: usize, author: &Value, content: &str) -> Value {
    let timestamp = STARTED_AT + i64::try_from(number).unwrap_or_default() * 60_000;
    json!({"external_id": format!("m-{number}"), "timestamp": timestamp, "author": author, "content": content})
}

/// `count` messages of one customer.
pub fn messages(count: usize) -> Value {
    let ann = json!({"type": "contact", "external_id": "ann"});
    (0..count).map(|number| message(number, &ann, "Hello?")).collect()
}

/// One change of a body.
#[derive(Debug, Clone)]
pub enum Edit {
    /// Sets a value at a JSON Pointer.
    Set(&'static str, Value),
    /// Removes the value at a JSON Pointer.
    Unset(&'static str),
}

pub fn set(pointer: &'static str, value: impl Into<Value>) -> Edit {
    Edit::Set(pointer, value.into())
}

pub fn unset(pointer: &'static str) -> Edit {
    Edit::Unset(pointer)
}

/// The body with the changes made. The parent of every pointer must be an object or, to replace an item, an array.
pub fn edited(mut body: Value, edits: &[Edit]) -> Value {
    for edit in edits {
        let pointer = match edit {
            Edit::Set(pointer, _) | Edit::Unset(pointer) => *pointer,
        };
        let (parent, name) = pointer.rsplit_once('/').unwrap_or_default();
        let parent = body.pointer_mut(parent);
        match (parent, edit) {
            (Some(Value::Object(fields)), Edit::Set(_, value)) => {
                fields.insert(name.to_owned(), value.clone());
            }
            (Some(Value::Object(fields)), Edit::Unset(_)) => {
                fields.remove(name);
            }
            (Some(Value::Array(items)), Edit::Set(_, value)) => {
                let index = name.parse().unwrap_or(items.len());
                items[index] = value.clone();
            }
            (parent, edit) => unreachable!("{edit:?} has no place in {parent:?}"),
        }
    }
    body
}
