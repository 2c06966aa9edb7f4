use assay_contracts::conversation::Conversation;
use serde_json::json;

use super::*;

const EXAMPLE: &str = include_str!("../../../../../../examples/helpdesks/intercom.json");

fn mapping() -> Mapping {
    let ai = AiAuthors { default_agent: Some("fin".to_owned()), ..AiAuthors::default() };
    Mapping { account: None, ai }
}

/// The request for one conversation, which the service accepts.
fn converted(item: &Value, mapping: &Mapping) -> Result<Request, String> {
    let request = convert(item.to_string().into_bytes(), mapping).remove(0).request;
    if let Ok(request) = &request {
        Conversation::parse(&request.body).expect("the service takes it");
    }
    request
}

fn with_part(part: Value) -> Value {
    let source = json!({"id": "s", "body": "Hi", "author": {"type": "lead", "id": "l"}});
    json!({"id": 1, "created_at": 10, "source": source, "conversation_parts": {"conversation_parts": [part]}})
}

fn part(author: Value) -> Value {
    json!({"id": "p", "part_type": "comment", "body": "x", "created_at": 11, "author": author})
}

#[test]
fn example_is_converted() {
    let converted = convert(EXAMPLE.as_bytes().to_vec(), &mapping());
    assert_eq!(converted.len(), 1);
    let request = converted[0].request.as_ref().unwrap();
    let kim = json!({"type": "contact", "external_id": "u-1", "name": "Kim"});
    let noa = json!({"type": "teammate", "external_id": "a-7", "name": "Noa"});
    let message = |id: &str, seconds: i64, author: &Value, content: &str| json!({"external_id": id, "timestamp": seconds * 1000, "kind": "message", "author": author, "content": content});
    let mut answer = message(
        "1",
        1_772_440_030,
        &json!({"type": "ai", "external_id": "fin", "name": "Fin"}),
        "I have cancelled your plan.\nThe refund needs a colleague.",
    );
    answer["ai_tool"] = json!("intercom");
    let mut note = message("3", 1_772_443_000, &noa, "Refund of 12 EUR approved.");
    note["kind"] = json!("comment");
    assert_eq!(
        serde_json::from_slice::<Value>(&request.body).unwrap(),
        json!({"ticket_id": "5501", "source": "intercom", "subject": "Cancel my plan", "messages": [
            message("source-70001", 1_772_440_000, &kim, "Hello, please cancel my plan & refund March."),
            answer,
            message("2", 1_772_440_031, &json!({"type": "system"}), "conversation assigned to a teammate"),
            note,
            message("4", 1_772_443_600, &noa, "The refund is on its way, you will have it by Friday."),
            message("5", 1_772_444_000, &kim, "Great, thanks a lot!"),
        ]})
    );
}

#[test]
fn author_is_mapped_by_type_and_options() {
    let named = Mapping {
        account: None,
        ai: AiAuthors {
            agents: [("a".to_owned(), "mine".to_owned())].into(),
            default_agent: None,
            tool: Some(AiTool::Ada),
        },
    };
    let cases = [
        (json!({"type": "contact", "id": "c"}), mapping(), json!({"type": "contact", "external_id": "c"})),
        (json!({"type": "team", "id": 9}), mapping(), json!({"type": "teammate", "external_id": "9"})),
        (json!({"type": "bot", "id": "b"}), mapping(), json!({"type": "ai", "external_id": "fin"})),
        (
            json!({"type": "bot", "id": "b", "from_ai_agent": false}),
            mapping(),
            json!({"type": "system", "external_id": "b"}),
        ),
        (
            json!({"type": "admin", "id": "z", "is_ai_answer": true}),
            mapping(),
            json!({"type": "ai", "external_id": "fin"}),
        ),
        (
            json!({"type": "admin", "id": "a", "name": "A"}),
            named,
            json!({"type": "ai", "external_id": "mine", "name": "A"}),
        ),
    ];
    for (author, mapping, expected) in cases {
        let request = converted(&with_part(part(author.clone())), &mapping).unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["messages"][1]["author"], expected, "{author}");
    }
}

#[test]
fn parts_without_text_become_system_events() {
    let event = |part_type: &str, more: Value| {
        let mut part = json!({"id": "p", "part_type": part_type, "body": null, "created_at": 11});
        part.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        part
    };
    let cases = [
        (event("snoozed", json!({})), "snoozed"),
        (
            event("away_mode_assignment", json!({"assigned_to": {"type": "team"}})),
            "conversation assigned to team",
        ),
        (event("assignment", json!({"assigned_to": null})), "assignment removed"),
        (event("comment", json!({"redacted": true, "author": {"type": "user", "id": "u"}})), "[redacted]"),
        (
            event(
                "comment",
                json!({"attachments": [{"name": "a.png"}], "author": {"type": "user", "id": "u"}}),
            ),
            "[attachment: a.png]",
        ),
    ];
    for (part, text) in cases {
        let request = converted(&with_part(part.clone()), &mapping()).unwrap();
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["messages"][1]["content"], text, "{part}");
    }
    let request = converted(&with_part(event("comment", json!({}))), &mapping()).unwrap();
    assert_eq!(request.notices, ["part p has no text and was left out"]);
}

#[test]
fn unmappable_conversation_is_refused_with_advice() {
    let unmapped = Mapping::default();
    let cases = [
        (json!([]).to_string(), None),
        (json!({"id": 1}).to_string(), Some("no conversation as in Intercom's API")),
        (json!({"id": 1, "created_at": 5}).to_string(), Some("has no `conversation_parts`")),
        (with_part(part(json!({"type": "bot", "id": "b"}))).to_string(), Some("--ai-author b=AGENT")),
        (with_part(part(json!({"type": "user"}))).to_string(), Some("has no id")),
        (with_part(part(json!({"type": "ghost", "id": 1}))).to_string(), Some("type `ghost`")),
    ];
    for (line, expected) in cases {
        let reasons: Vec<String> = convert(line.clone().into_bytes(), &unmapped)
            .into_iter()
            .filter_map(|c| c.request.err())
            .collect();
        match expected {
            Some(expected) => {
                assert!(reasons.len() == 1 && reasons[0].contains(expected), "{line}: {reasons:?}")
            }
            None => assert!(reasons.is_empty(), "{line}: {reasons:?}"),
        }
    }
}

#[test]
fn parts_missing_from_input_give_a_notice() {
    let mut item = with_part(part(json!({"type": "user", "id": "u"})));
    item["conversation_parts"]["total_count"] = json!(612);
    let request = converted(&item, &mapping()).unwrap();
    assert!(request.notices[0].starts_with("611 of its parts"), "{:?}", request.notices);
}
