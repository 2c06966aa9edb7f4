use assay_contracts::conversation::Conversation;
use serde_json::json;

use super::*;

const EXAMPLE: &str = include_str!("../../../../../../examples/helpdesks/zendesk.jsonl");

fn mapping() -> Mapping {
    let agents = BTreeMap::from([("9100".to_owned(), "parcel-bot".to_owned())]);
    Mapping { account: Some("acme".to_owned()), ai: AiAuthors { agents, default_agent: None, tool: None } }
}

fn sent(converted: &Converted) -> Value {
    let body = &converted.request.as_ref().unwrap().body;
    Conversation::parse(body).expect("the service takes it");
    serde_json::from_slice(body).unwrap()
}

fn refusal(item: &Value) -> String {
    let converted = convert(item.to_string().into_bytes(), &mapping());
    converted[0].request.clone().unwrap_err()
}

#[test]
fn examples_are_converted() {
    let converted: Vec<Converted> =
        EXAMPLE.lines().flat_map(|line| convert(line.as_bytes().to_vec(), &mapping())).collect();
    let lea = json!({"type": "contact", "external_id": "9001", "name": "Lea Roux"});
    let bot = |name: Option<&str>| match name {
        Some(name) => json!({"type": "ai", "external_id": "parcel-bot", "name": name}),
        None => json!({"type": "ai", "external_id": "parcel-bot"}),
    };
    let message = |id: &str, time: &str, kind: &str, author: &Value, content: &str| {
        let timestamp = Timestamp::parse(time).unwrap().as_millis();
        json!({"external_id": id, "timestamp": timestamp, "kind": kind, "author": author, "content": content})
    };
    assert_eq!(
        sent(&converted[0]),
        json!({"ticket_id": "4711", "source": "zendesk", "source_account_id": "acme", "subject": "Parcel not here", "messages": [
            message("1", "2026-03-02T08:15:00Z", "message", &lea, "My parcel 88-12 should have come on Monday. Where is it?"),
            message("2", "2026-03-02T08:15:20Z", "message", &bot(Some("Parcel bot")),
                "Parcel 88-12 is at the depot in Lyon and will be delivered tomorrow before noon."),
            message("3", "2026-03-02T09:00:00Z", "comment",
                &json!({"type": "teammate", "external_id": "9200", "name": "Max"}), "Carrier confirmed the new date."),
            message("4", "2026-03-02T09:10:00Z", "message", &lea, "Perfect, that solves it. Thank you!"),
        ]})
    );
    let second = sent(&converted[1]);
    let types: Vec<_> = (0..3).map(|index| second["messages"][index]["author"]["type"].clone()).collect();
    assert_eq!(types, ["contact", "teammate", "system"]);
    assert_eq!(second["messages"][1]["content"], "[attachment: invoice-2026-02.pdf]");
    let third = sent(&converted[2]);
    assert_eq!(third.get("subject"), None);
    assert_eq!(third["messages"][0]["author"]["name"], "Ada", "a page's users count for its tickets");
    assert_eq!(third["messages"][1]["author"], bot(None));
    assert_eq!(converted.len(), 3);
}

#[test]
fn unmappable_ticket_is_refused_with_advice() {
    let comment = |author: i64| json!({"id": 1, "author_id": author, "created_at": "2026-01-01T00:00:00Z", "body": "x"});
    let cases = [
        (json!(7), "no JSON object"),
        (json!({"ticket": 7}), "no ticket"),
        (json!({"comments": []}), "missing field `id`"),
        (json!({"ticket": {"id": 1}}), "ticket 1 has no `comments`"),
        (json!({"id": 1, "comments": []}), "no message with a text"),
        (json!({"id": 1, "comments": [comment(5)]}), "author 5 is not the requester"),
        (json!({"id": 1, "comments": [comment(5)], "users": [{"id": 5, "role": "king"}]}), "role `king`"),
        (
            json!({"id": 1, "comments": [{"id": 2, "created_at": "2026-01-01T00:00:00Z", "body": "x"}]}),
            "no author_id",
        ),
        (
            json!({"id": 1, "comments": [{"id": 2, "author_id": 5, "created_at": "yesterday"}]}),
            "created_at `yesterday`",
        ),
    ];
    for (item, expected) in cases {
        let reason = refusal(&item);
        assert!(reason.contains(expected), "{item}: {reason}");
    }
    let converted = convert(b"{\"ticket\":".to_vec(), &mapping());
    assert!(converted[0].request.as_ref().unwrap_err().contains("not JSON"));
}

#[test]
fn comment_without_text_gives_a_notice() {
    let empty = json!({"id": 2, "author_id": 5, "created_at": "2026-01-01T00:00:00Z", "body": " "});
    let full = json!({"id": 3, "author_id": 5, "created_at": "2026-01-01T00:00:00Z", "body": "x"});
    let item = json!({"id": 1, "requester_id": 5, "comments": [empty, full]});
    let request = convert(item.to_string().into_bytes(), &mapping()).remove(0).request.unwrap();
    assert_eq!(request.notices, ["comment 2 has no text and was left out"]);
}

#[test]
fn comments_are_sorted_by_time() {
    let comment = |id: i64| json!({"id": id, "author_id": 5, "created_at": format!("2026-01-0{id}T00:00:00Z"), "body": "x"});
    let item = json!({"id": 1, "requester_id": 5, "comments": [comment(3), comment(2), comment(1)]});
    let converted = convert(item.to_string().into_bytes(), &mapping());
    let sent = sent(&converted[0]);
    let ids: Vec<_> = (0..3).map(|index| sent["messages"][index]["external_id"].clone()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
}
