//! The rules of the specification about the body of `POST /v1/assess`, one by one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use assay_contracts::conversation::{AiTool, Author, Conversation, MAX_MESSAGES, MessageKind};
use assay_contracts::validation::BodyError;
use serde_json::{Value, json};

fn message(index: usize) -> Value {
    json!({
        "author": {"type": "contact", "external_id": "c-1"},
        "content": "Where is my refund?",
        "external_id": format!("m-{index}"),
        "timestamp": 1_700_000_000_000_i64 + index as i64,
    })
}

fn body() -> Value {
    json!({"ticket_id": "T-1", "messages": [message(0), message(1)]})
}

fn parse(body: &Value) -> Result<Conversation, BodyError> {
    Conversation::parse(body.to_string().as_bytes())
}

fn pointers(body: &Value) -> Vec<String> {
    match parse(body) {
        Err(BodyError::Invalid(errors)) => errors.into_iter().map(|error| error.pointer).collect(),
        other => panic!("expected validation errors, got {other:?}"),
    }
}

/// The valid body with the value at `pointer` set (its parent must exist).
fn with(pointer: &str, value: Value) -> Value {
    let mut body = body();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Object(fields) => {
            fields.insert(field.to_owned(), value);
        }
        Value::Array(items) => items[field.parse::<usize>().unwrap()] = value,
        other => panic!("{other} has no children"),
    }
    body
}

fn without(pointer: &str) -> Value {
    let mut body = body();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(field);
    body
}

#[test]
fn minimal_body_gets_defaults() {
    let conversation = parse(&body()).unwrap();
    assert_eq!(conversation.source, "custom");
    assert_eq!(conversation.source_account_id, None);
    assert_eq!(conversation.subject, None);
    assert_eq!(conversation.messages[0].kind, MessageKind::Message);
}

#[test]
fn every_author_variant_is_read() {
    let authors = [
        json!({"type": "contact", "external_id": "c", "name": "Ann", "id": 7}),
        json!({"type": "teammate", "external_id": "t"}),
        json!({"type": "ai", "external_id": "bot"}),
        json!({"type": "ai", "id": "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11"}),
        json!({"type": "system"}),
        json!({"type": "mixed", "name": "several people", "external_id": 3}),
    ];
    for author in authors {
        parse(&with("/messages/0/author", author.clone()))
            .unwrap_or_else(|error| panic!("{author}: {error:?}"));
    }
    let mixed = parse(&with("/messages/0/author", json!({"type": "mixed", "name": "label"}))).unwrap();
    assert_eq!(mixed.messages[0].author, Author::Mixed);
}

#[test]
fn ai_tool_is_kept_only_on_ai_messages() {
    for tool in AiTool::ALL {
        let mut body = with("/messages/0/author", json!({"type": "ai", "external_id": "bot"}));
        body["messages"][0]["ai_tool"] = json!(tool.as_str());
        body["messages"][1]["ai_tool"] = json!(tool.as_str());
        let conversation = parse(&body).unwrap();
        assert_eq!(conversation.messages[0].ai_tool, Some(*tool));
        assert_eq!(conversation.messages[1].ai_tool, None);
    }
}

#[test]
fn ai_tool_is_validated_only_on_ai_messages() {
    for label in [json!("helpscout"), json!(5)] {
        let mut body = with("/messages/0/author", json!({"type": "ai", "external_id": "bot"}));
        body["messages"][1]["ai_tool"] = label.clone();
        parse(&body).unwrap();
        body["messages"][0]["ai_tool"] = label;
        assert_eq!(pointers(&body), ["/messages/0/ai_tool"]);
    }
}

#[test]
fn order_and_uniqueness_are_checked_on_invalid_messages() {
    let mut body = body();
    body["messages"][1] = json!({
        "author": {"type": "contact"}, "content": "", "external_id": "m-0", "timestamp": 5,
    });
    assert_eq!(
        pointers(&body),
        [
            "/messages/1/content",
            "/messages/1/timestamp",
            "/messages/1/external_id",
            "/messages/1/author/external_id",
        ]
    );
}

#[test]
fn error_has_the_pointer_of_its_field() {
    let long = "x".repeat(1025);
    let cases = [
        (without("/ticket_id"), "/ticket_id"),
        (without("/messages"), "/messages"),
        (with("/ticket_id", json!("")), "/ticket_id"),
        (with("/ticket_id", json!(17)), "/ticket_id"),
        (with("/ticket_id", json!(long)), "/ticket_id"),
        (with("/ticket_id", json!("a\u{0}b")), "/ticket_id"),
        (with("/source", json!("")), "/source"),
        (with("/source", json!(5)), "/source"),
        (with("/source_account_id", json!("")), "/source_account_id"),
        (with("/source_account_id", json!(long)), "/source_account_id"),
        (with("/subject", json!({})), "/subject"),
        (with("/subject", json!("\u{0}")), "/subject"),
        (with("/messages", json!([])), "/messages"),
        (with("/messages", json!({"0": message(0)})), "/messages"),
        (with("/messages/1", json!("text")), "/messages/1"),
        (without("/messages/1/author"), "/messages/1/author"),
        (without("/messages/1/content"), "/messages/1/content"),
        (with("/messages/1/content", json!("")), "/messages/1/content"),
        (with("/messages/1/content", json!("a\u{0}")), "/messages/1/content"),
        (without("/messages/1/external_id"), "/messages/1/external_id"),
        (with("/messages/1/external_id", json!("m-0")), "/messages/1/external_id"),
        (without("/messages/1/timestamp"), "/messages/1/timestamp"),
        (with("/messages/1/timestamp", json!("1700000000000")), "/messages/1/timestamp"),
        (with("/messages/1/timestamp", json!(1.5)), "/messages/1/timestamp"),
        (with("/messages/1/timestamp", json!(-1)), "/messages/1/timestamp"),
        (with("/messages/1/timestamp", json!(253_402_300_800_000_i64)), "/messages/1/timestamp"),
        (with("/messages/1/timestamp", json!(1_600_000_000_000_i64)), "/messages/1/timestamp"),
        (with("/messages/1/kind", json!("Message")), "/messages/1/kind"),
        (with("/messages/1/author", json!([])), "/messages/1/author"),
        (with("/messages/1/author", json!({})), "/messages/1/author/type"),
        (with("/messages/1/author", json!({"type": "bot"})), "/messages/1/author/type"),
        (with("/messages/1/author", json!({"type": "contact"})), "/messages/1/author/external_id"),
        (with("/messages/1/author", json!({"type": "teammate"})), "/messages/1/author/external_id"),
        (with("/messages/1/author", json!({"type": "ai"})), "/messages/1/author"),
        (with("/messages/1/author", json!({"type": "ai", "id": ""})), "/messages/1/author/id"),
        (with("/messages/1/author", json!({"type": "system", "name": ""})), "/messages/1/author/name"),
        (with("/messages/1/author", json!({"type": "mixed", "name": ""})), "/messages/1/author/name"),
    ];
    for (body, pointer) in cases {
        assert_eq!(pointers(&body), [pointer], "{body}");
    }
}

#[test]
fn integer_of_thirty_digits_is_an_error_of_its_field() {
    let text = body().to_string().replace("1700000000001", "123456789012345678901234567890");
    match Conversation::parse(text.as_bytes()) {
        Err(BodyError::Invalid(errors)) => assert_eq!(errors[0].pointer, "/messages/1/timestamp"),
        other => panic!("expected an error, got {other:?}"),
    }
}

#[test]
fn name_length_is_counted_in_characters() {
    parse(&with("/ticket_id", json!("é".repeat(1024)))).unwrap();
    assert_eq!(pointers(&with("/ticket_id", json!("é".repeat(1025)))), ["/ticket_id"]);
}

#[test]
fn one_to_fifty_messages_are_accepted() {
    let messages = |count: usize| (0..count).map(message).collect::<Vec<_>>();
    parse(&with("/messages", json!(messages(1)))).unwrap();
    parse(&with("/messages", json!(messages(MAX_MESSAGES)))).unwrap();
    assert_eq!(pointers(&with("/messages", json!(messages(MAX_MESSAGES + 1)))), ["/messages"]);
}

#[test]
fn comment_may_have_the_external_id_of_a_message() {
    let mut body = with("/messages/1/external_id", json!("m-0"));
    body["messages"][1]["kind"] = json!("comment");
    parse(&body).unwrap();
}

#[test]
fn equal_timestamps_are_chronological() {
    parse(&with("/messages/1/timestamp", json!(1_700_000_000_000_i64))).unwrap();
}

#[test]
fn all_errors_are_reported_up_to_twenty() {
    let mut several = body();
    several["ticket_id"] = json!("");
    several["messages"][0]["content"] = json!(1);
    several["messages"][1]["author"] = json!({"type": "contact"});
    assert_eq!(pointers(&several), ["/ticket_id", "/messages/0/content", "/messages/1/author/external_id"]);
    let broken: Vec<Value> = (0..50).map(|_| json!({})).collect();
    assert_eq!(pointers(&with("/messages", json!(broken))).len(), 20);
}

#[test]
fn invalid_json_is_malformed() {
    let nested = "[".repeat(10_000);
    let cases: [&[u8]; 7] = [
        b"",
        b"  \n",
        b"{\"ticket_id\": \"T-1\", \"messages\": [",
        b"{\"ticket_id\": \"\xff\xfe\"}",
        b"{\"ticket_id\": \"\\ud800\"}",
        b"{} {}",
        nested.as_bytes(),
    ];
    for body in cases {
        assert!(matches!(Conversation::parse(body), Err(BodyError::Malformed(_))), "{body:?}");
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let mut body = with("/colour", json!("blue"));
    body["messages"][0]["attachments"] = json!([{"deep": [1, 2, 3]}]);
    assert_eq!(parse(&body).unwrap().messages.len(), 2);
}
