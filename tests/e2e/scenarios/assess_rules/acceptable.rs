//! Boundary cases that are accepted.

use serde_json::{Value, json};

use crate::harness::{Edit, messages, set, unset};

/// Name and edits of a valid conversation.
pub fn all() -> Vec<(&'static str, Vec<Edit>)> {
    let author = |value: Value| vec![set("/messages/1/author", value)];
    let mut table = vec![
        ("one message", vec![set("/messages", messages(1))]),
        ("50 messages", vec![set("/messages", messages(50))]),
        ("no subject", vec![unset("/subject")]),
        ("empty subject", vec![set("/subject", "")]),
        (
            "null for every optional field of the conversation",
            vec![
                set("/source", Value::Null),
                set("/source_account_id", Value::Null),
                set("/subject", Value::Null),
            ],
        ),
        (
            "null for optional fields of a message",
            vec![
                set("/messages/0/kind", Value::Null),
                set("/messages/0/ai_tool", Value::Null),
                set("/messages/0/author/name", Value::Null),
            ],
        ),
        ("long subject", vec![set("/subject", "s".repeat(5_000))]),
        ("equal timestamps", vec![set("/messages/1/timestamp", 1_763_600_000_000_i64)]),
        ("first moment", vec![set("/messages/0/timestamp", 0)]),
        ("last moment", vec![set("/messages/2/timestamp", 253_402_300_799_999_i64)]),
        ("integer with a zero fraction", vec![set("/messages/0/timestamp", 1_763_600_000_000.0)]),
        (
            "unknown fields",
            vec![set("/x", 1), set("/messages/0/x", json!({})), set("/messages/0/author/x", json!([]))],
        ),
        (
            "comment with a message's id",
            vec![set("/messages/1/kind", "comment"), set("/messages/1/external_id", "m-0")],
        ),
        ("ai_tool of an author who is no AI", vec![set("/messages/0/ai_tool", "zendesk")]),
        ("an unknown label of an author who is no AI", vec![set("/messages/0/ai_tool", 7)]),
        ("ai by external_id", author(json!({"type": "ai", "external_id": "bot", "name": "Bot"}))),
        ("system with nothing else", author(json!({"type": "system"}))),
        (
            "system with an id and a name",
            author(json!({"type": "system", "external_id": "s", "name": "Router"})),
        ),
        ("mixed with nothing else", author(json!({"type": "mixed"}))),
        ("mixed with a name", author(json!({"type": "mixed", "name": "Thread"}))),
        ("mixed with an empty id", author(json!({"type": "mixed", "external_id": ""}))),
        (
            "contact with an id that is not used",
            author(json!({"type": "contact", "external_id": "c", "id": 7})),
        ),
        ("a megabyte of text", vec![set("/messages/1/content", "word ".repeat(200_000))]),
    ];
    for tool in [
        "custom",
        "intercom",
        "zendesk",
        "salesforce",
        "hubspot",
        "freshdesk",
        "gorgias",
        "front",
        "helpScout",
        "ada",
        "decagon",
    ] {
        let mut edits = author(json!({"type": "ai", "external_id": "bot"}));
        edits.push(set("/messages/1/ai_tool", tool));
        table.push((tool, edits));
    }
    for text in ["x".repeat(1_024), "é".repeat(1_024), "😀".repeat(1_024)] {
        let names = [
            "/ticket_id",
            "/source",
            "/source_account_id",
            "/messages/0/external_id",
            "/messages/0/author/external_id",
        ];
        table.push(("names of 1,024 characters", names.map(|pointer| set(pointer, text.clone())).into()));
        table.push(("a name of 1,024 characters", vec![set("/messages/0/author/name", text)]));
    }
    table
}
