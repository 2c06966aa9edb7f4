//! The rules about the body of `POST /v1/assess`, one by one.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use assay_contracts::conversation::{AiTool, Author, Conversation, MAX_MESSAGES, MessageKind};
use assay_contracts::validation::BodyError;
use serde_json::{Value, json};

/// Ids and names: 1 to 1,024 characters.
const NAMES: [&str; 6] = [
    "/ticket_id",
    "/source",
    "/source_account_id",
    "/messages/1/external_id",
    "/messages/1/author/external_id",
    "/messages/1/author/name",
];

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
    pointers_of(&body.to_string())
}

fn pointers_of(text: &str) -> Vec<String> {
    match Conversation::parse(text.as_bytes()) {
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
        json!({"type": "ai", "external_id": "bot", "name": "Bot"}),
        json!({"type": "ai", "id": "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11"}),
        json!({"type": "system"}),
        json!({"type": "system", "external_id": "s", "name": "Router"}),
        json!({"type": "mixed"}),
        json!({"type": "mixed", "external_id": ""}),
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
    let labels: Vec<&str> = AiTool::ALL.iter().map(|tool| tool.as_str()).collect();
    assert_eq!(
        labels.join(" "),
        "custom intercom zendesk salesforce hubspot freshdesk gorgias front helpScout ada decagon"
    );
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
    let labels = ["", "Custom", "helpscout", "help_scout", "openai"].map(Value::from);
    for label in labels.into_iter().chain([json!(5)]) {
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
fn required_field_is_neither_absent_nor_null() {
    let required = [
        "/ticket_id",
        "/messages",
        "/messages/1/author",
        "/messages/1/content",
        "/messages/1/external_id",
        "/messages/1/timestamp",
        "/messages/1/author/type",
        "/messages/1/author/external_id",
    ];
    for pointer in required {
        assert_eq!(pointers(&without(pointer)), [pointer]);
        assert_eq!(pointers(&with(pointer, Value::Null)), [pointer]);
    }
}

#[test]
fn null_of_an_optional_field_is_its_default() {
    let optional = [
        "/source",
        "/source_account_id",
        "/subject",
        "/messages/1/kind",
        "/messages/1/ai_tool",
        "/messages/1/author/name",
    ];
    for pointer in optional {
        assert_eq!(parse(&with(pointer, Value::Null)).unwrap(), parse(&body()).unwrap(), "{pointer}");
    }
}

#[test]
fn text_of_another_type_is_an_error_of_its_field() {
    let texts = ["/subject", "/messages/1/content", "/messages/1/kind", "/messages/1/author/type"];
    for pointer in NAMES.into_iter().chain(texts) {
        for value in [json!(7), json!(true), json!(["x"]), json!({})] {
            assert_eq!(pointers(&with(pointer, value.clone())), [pointer], "{value}");
        }
    }
}

#[test]
fn object_or_list_of_another_type_is_an_error_of_its_field() {
    for value in [json!({"0": message(0)}), json!({}), json!("x"), json!(1)] {
        assert_eq!(pointers(&with("/messages", value.clone())), ["/messages"], "{value}");
    }
    for pointer in ["/messages/1", "/messages/1/author"] {
        for value in [json!(null), json!("x"), json!([])] {
            assert_eq!(pointers(&with(pointer, value.clone())), [pointer], "{value}");
        }
    }
    for value in [json!([]), json!("x"), json!(null), json!(1), json!([body()])] {
        assert_eq!(pointers(&value), [""], "{value}");
    }
}

#[test]
fn name_has_1_to_1024_characters_and_no_nul() {
    for (pointer, author) in NAMES.into_iter().flat_map(|name| [(name, "contact"), (name, "teammate")]) {
        let named = |text: &str| {
            let mut body = with(pointer, json!(text));
            body["messages"][1]["author"]["type"] = json!(author);
            body
        };
        for character in ["x", "é", "😀"] {
            parse(&named(&character.repeat(1_024))).unwrap();
            assert_eq!(pointers(&named(&character.repeat(1_025))), [pointer], "{author} {character}");
        }
        for text in ["", "a\0b", &"x".repeat(10_240)] {
            assert_eq!(pointers(&named(text)), [pointer], "{author} {text:?}");
        }
    }
}

#[test]
fn error_has_the_pointer_of_its_field() {
    let cases = [
        ("/subject", json!("\0")),
        ("/messages/1/content", json!("")),
        ("/messages/1/content", json!("a\0")),
        ("/messages/1/external_id", json!("m-0")),
        ("/messages/1/timestamp", json!("1700000000000")),
        ("/messages/1/timestamp", json!("2025-11-20T00:53:20Z")),
        ("/messages/1/timestamp", json!(true)),
        ("/messages/1/timestamp", json!(1.5)),
        ("/messages/1/timestamp", json!(-1)),
        ("/messages/1/timestamp", json!(253_402_300_800_000_i64)),
        ("/messages/1/timestamp", json!(1_600_000_000_000_i64)),
        ("/messages/1/timestamp", json!(1_699_999_999_999_i64)),
    ];
    let kinds = ["", "Message", "note", "message "].map(|kind| ("/messages/1/kind", json!(kind)));
    let authors = ["", "Contact", "customer", "bot"].map(|author| ("/messages/1/author/type", json!(author)));
    for (pointer, value) in cases.into_iter().chain(kinds).chain(authors) {
        assert_eq!(pointers(&with(pointer, value.clone())), [pointer], "{value}");
    }
}

#[test]
fn error_of_an_author_has_the_pointer_of_its_field() {
    let cases = [
        (json!({}), "/type"),
        (json!({"type": "contact", "name": "Ann"}), "/external_id"),
        (json!({"type": "teammate"}), "/external_id"),
        (json!({"type": "ai", "name": "Bot"}), ""),
        (json!({"type": "ai", "external_id": ""}), "/external_id"),
        (json!({"type": "ai", "id": ""}), "/id"),
        (json!({"type": "ai", "id": "", "external_id": "bot"}), "/id"),
        (json!({"type": "ai", "id": 7}), "/id"),
        (json!({"type": "ai", "external_id": "bot", "name": ""}), "/name"),
        (json!({"type": "system", "external_id": ""}), "/external_id"),
        (json!({"type": "system", "name": ""}), "/name"),
        (json!({"type": "mixed", "name": ""}), "/name"),
        (json!({"type": "mixed", "name": 1}), "/name"),
    ];
    for (author, field) in cases {
        let pointer = format!("/messages/1/author{field}");
        assert_eq!(pointers(&with("/messages/1/author", author.clone())), [pointer], "{author}");
    }
}

#[test]
fn number_out_of_the_time_range_is_an_error_of_its_field() {
    for number in ["9223372036854775808", "18446744073709551616", "123456789012345678901234567890", "1e300"] {
        let text = body().to_string().replace("1700000000001", number);
        assert_eq!(pointers_of(&text), ["/messages/1/timestamp"], "{number}");
    }
}

#[test]
fn first_and_last_moment_and_zero_fraction_are_accepted() {
    let mut body = with("/messages/0/timestamp", json!(0));
    body["messages"][1]["timestamp"] = json!(253_402_300_799_999_i64);
    parse(&body).unwrap();
    let with_fraction = with("/messages/1/timestamp", json!(1_700_000_000_001.0));
    assert_eq!(parse(&with_fraction).unwrap(), parse(&self::body()).unwrap());
}

#[test]
fn subject_and_content_may_have_any_length() {
    for subject in ["", &"s".repeat(5_000)] {
        assert_eq!(parse(&with("/subject", json!(subject))).unwrap().subject.as_deref(), Some(subject));
    }
    let content = "word ".repeat(200_000);
    assert!(parse(&with("/messages/1/content", json!(content))).unwrap().messages[1].content == content);
}

#[test]
fn one_to_fifty_messages_are_accepted() {
    let messages = |count: usize| (0..count).map(message).collect::<Vec<_>>();
    parse(&with("/messages", json!(messages(1)))).unwrap();
    parse(&with("/messages", json!(messages(MAX_MESSAGES)))).unwrap();
    for count in [0, MAX_MESSAGES + 1, 10 * MAX_MESSAGES] {
        assert_eq!(pointers(&with("/messages", json!(messages(count)))), ["/messages"], "{count}");
    }
}

#[test]
fn comment_may_have_the_external_id_of_a_message() {
    let mut body = with("/messages/1/external_id", json!("m-0"));
    body["messages"][1]["kind"] = json!("comment");
    parse(&body).unwrap();
    body["messages"][0]["kind"] = json!("comment");
    assert_eq!(pointers(&body), ["/messages/1/external_id"]);
}

#[test]
fn timestamp_may_equal_but_not_precede_an_earlier_one() {
    parse(&with("/messages/1/timestamp", json!(1_700_000_000_000_i64))).unwrap();
    // Each is compared with all before it.
    let mut body = with("/messages", json!([message(0), message(60_000), message(59_999)]));
    assert_eq!(pointers(&body), ["/messages/2/timestamp"]);
    body["messages"][2] = message(60_001);
    body["messages"][2]["external_id"] = json!("m-0");
    assert_eq!(pointers(&body), ["/messages/2/external_id"]);
}

#[test]
fn all_errors_are_reported_up_to_twenty() {
    let mut several = body();
    several["ticket_id"] = json!("");
    several["source"] = json!("");
    several["messages"][0]["content"] = json!(1);
    several["messages"][1]["kind"] = json!("x");
    several["messages"][1]["author"] = json!({"type": "contact"});
    assert_eq!(
        pointers(&several),
        [
            "/ticket_id",
            "/source",
            "/messages/0/content",
            "/messages/1/kind",
            "/messages/1/author/external_id",
        ]
    );
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
    body["messages"][0]["author"]["x"] = json!([]);
    assert_eq!(parse(&body).unwrap().messages.len(), 2);
}
