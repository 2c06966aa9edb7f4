//! Specification, sections "Conversation import request", "Message object" and "Author variants": every rule, from
//! both sides.

mod acceptable;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Edit, Stack, conversation, edited, message, messages, set, unset};

/// A refused body: the edits of a valid one, and the pointer of the expected error.
struct Refusal {
    name: &'static str,
    edits: Vec<Edit>,
    pointer: &'static str,
}

/// Every violated rule is refused with the field's pointer, and the identity stays free for a valid body.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    api.register("bot").await?;
    let mut cases = Cases::default();
    let tables = [required_and_typed(), names_and_texts(), lists_and_choices(), times(), authors()];
    for (number, refusal) in tables.into_iter().flatten().enumerate() {
        let ticket = format!("refused-{number}");
        cases.check(refusal.name, is_refused(&api, &ticket, &refusal).await);
    }
    for (number, (name, edits)) in acceptable::all().into_iter().enumerate() {
        let body = edited(conversation(&format!("accepted-{number}")), &edits);
        cases.check(name, api.import(&body).await.map(drop));
    }
    cases.check("all errors in one answer", all_errors_are_reported(&api).await);
    cases.check("at most twenty errors", at_most_twenty_errors_are_reported(&api).await);
    cases.check("no object", no_object(&api).await);
    cases.finish()
}

async fn is_refused(api: &Api, ticket: &str, refusal: &Refusal) -> Result<()> {
    let good = conversation(ticket);
    let bad = edited(good.clone(), &refusal.edits);
    ensure!(bad != good, "the case changes nothing");
    api.post("/v1/assess", &bad).await?.error_at(refusal.pointer)?;
    // A refused request does not use the identity up: the valid body is accepted, unless the edits concern the identity.
    let edits_identity =
        !bad["ticket_id"].is_string() || bad["source"].is_string() || bad["source_account_id"].is_string();
    if edits_identity {
        return Ok(());
    }
    api.import(&good).await.context("the identity is not free after the refusal").map(drop)
}

fn refusal(name: &'static str, edits: impl IntoIterator<Item = Edit>, pointer: &'static str) -> Refusal {
    Refusal { name, edits: edits.into_iter().collect(), pointer }
}

/// A refusal whose error is at the edited pointer.
fn wrong(name: &'static str, pointer: &'static str, value: impl Into<Value>) -> Refusal {
    refusal(name, [set(pointer, value)], pointer)
}

fn required_and_typed() -> Vec<Refusal> {
    let required = [
        "/messages",
        "/ticket_id",
        "/messages/0/author",
        "/messages/1/content",
        "/messages/0/external_id",
        "/messages/2/timestamp",
        "/messages/0/author/type",
        "/messages/0/author/external_id",
        "/messages/1/author/external_id",
    ];
    let texts = [
        "/ticket_id",
        "/source",
        "/source_account_id",
        "/subject",
        "/messages/0/content",
        "/messages/0/external_id",
        "/messages/0/kind",
        "/messages/0/author/type",
        "/messages/0/author/external_id",
        "/messages/0/author/name",
    ];
    let mut table: Vec<_> = required.map(|pointer| refusal(pointer, [unset(pointer)], pointer)).into();
    for pointer in texts {
        table.extend(
            [json!(7), json!(true), json!(["x"]), json!({})].map(|value| wrong(pointer, pointer, value)),
        );
    }
    // `null` counts as absent.
    table.extend(required.map(|pointer| wrong(pointer, pointer, json!(null))));
    for pointer in ["/messages/0", "/messages/0/author"] {
        table.extend([json!(null), json!("x"), json!([])].map(|value| wrong(pointer, pointer, value)));
    }
    table.extend(
        [json!(null), json!({}), json!("x"), json!(1)].map(|value| wrong("messages", "/messages", value)),
    );
    table
}

fn names_and_texts() -> Vec<Refusal> {
    let names = [
        "/ticket_id",
        "/source",
        "/source_account_id",
        "/messages/0/external_id",
        "/messages/0/author/external_id",
        "/messages/0/author/name",
        "/messages/1/author/name",
    ];
    let mut table = Vec::new();
    for pointer in names {
        let too_long = ["x".repeat(1_025), "é".repeat(1_025), "😀".repeat(1_025), "x".repeat(10_240)];
        table.push(wrong(pointer, pointer, ""));
        table.push(wrong(pointer, pointer, "a\0b"));
        table.extend(too_long.map(|text| wrong(pointer, pointer, text)));
    }
    table.push(wrong("content empty", "/messages/1/content", ""));
    table.push(wrong("NUL in content", "/messages/1/content", "a\0"));
    table.push(wrong("NUL in subject", "/subject", "\0"));
    table
}

fn lists_and_choices() -> Vec<Refusal> {
    let mut table = vec![
        wrong("no message", "/messages", json!([])),
        wrong("51 messages", "/messages", messages(51)),
        wrong("500 messages", "/messages", messages(500)),
    ];
    for kind in ["", "Message", "note", "message "] {
        table.push(wrong("kind", "/messages/0/kind", kind));
    }
    for author in ["", "Contact", "customer", "bot"] {
        table.push(wrong("author type", "/messages/0/author/type", author));
    }
    for tool in ["", "Custom", "helpscout", "help_scout", "openai"] {
        let ai = set("/messages/1/author", json!({"type": "ai", "external_id": "bot"}));
        table.push(refusal("ai_tool", [ai, set("/messages/1/ai_tool", tool)], "/messages/1/ai_tool"));
    }
    table.push(refusal(
        "repeated message id",
        [set("/messages/2/external_id", "m-0")],
        "/messages/2/external_id",
    ));
    let both = [
        set("/messages/0/kind", "comment"),
        set("/messages/1/kind", "comment"),
        set("/messages/1/external_id", "m-0"),
    ];
    table.push(refusal("repeated comment id", both, "/messages/1/external_id"));
    table
}

/// The messages of the valid body are at 1_763_600_000_000, and one and two minutes later.
fn times() -> Vec<Refusal> {
    let timestamp = "/messages/0/timestamp";
    let integer = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut table = vec![
        refusal("order", [set("/messages/1/timestamp", 1_763_599_999_999_i64)], "/messages/1/timestamp"),
        refusal(
            "order behind a gap",
            [set("/messages/2/timestamp", 1_763_600_059_999_i64)],
            "/messages/2/timestamp",
        ),
        wrong("timestamp -1", timestamp, -1),
        wrong("timestamp beyond the year 9999", timestamp, 253_402_300_800_000_i64),
        wrong("timestamp as text", timestamp, "1763600000000"),
        wrong("timestamp as ISO 8601", timestamp, "2025-11-20T00:53:20Z"),
        wrong("timestamp with a fraction", timestamp, 1.5),
        wrong("timestamp null", timestamp, json!(null)),
        wrong("timestamp true", timestamp, true),
    ];
    for number in ["9223372036854775808", "18446744073709551616", "123456789012345678901234567890", "1e300"] {
        table.push(wrong("timestamp too large", timestamp, integer(number)));
    }
    table
}

fn authors() -> Vec<Refusal> {
    let author = "/messages/1/author";
    let case = |name, value: Value, pointer| refusal(name, [set(author, value)], pointer);
    vec![
        case(
            "contact without an id",
            json!({"type": "contact", "name": "Ann"}),
            "/messages/1/author/external_id",
        ),
        case("teammate without an id", json!({"type": "teammate"}), "/messages/1/author/external_id"),
        case("ai without any id", json!({"type": "ai", "name": "Bot"}), author),
        case(
            "ai with an empty external_id",
            json!({"type": "ai", "external_id": ""}),
            "/messages/1/author/external_id",
        ),
        case(
            "ai with an empty id",
            json!({"type": "ai", "id": "", "external_id": "bot"}),
            "/messages/1/author/id",
        ),
        case("ai with a number as id", json!({"type": "ai", "id": 7}), "/messages/1/author/id"),
        case(
            "ai with an empty name",
            json!({"type": "ai", "external_id": "bot", "name": ""}),
            "/messages/1/author/name",
        ),
        case(
            "system with an empty id",
            json!({"type": "system", "external_id": ""}),
            "/messages/1/author/external_id",
        ),
        case("system with an empty name", json!({"type": "system", "name": ""}), "/messages/1/author/name"),
        case("mixed with an empty name", json!({"type": "mixed", "name": ""}), "/messages/1/author/name"),
        case("mixed with a number as name", json!({"type": "mixed", "name": 1}), "/messages/1/author/name"),
    ]
}

async fn all_errors_are_reported(api: &Api) -> Result<()> {
    let edits = [
        unset("/ticket_id"),
        set("/source", ""),
        set("/messages/0/content", ""),
        set("/messages/2/kind", "x"),
    ];
    let reply = api.post("/v1/assess", &edited(conversation(""), &edits)).await?;
    for pointer in ["/ticket_id", "/source", "/messages/0/content", "/messages/2/kind"] {
        reply.error_at(pointer)?;
    }
    Ok(())
}

async fn at_most_twenty_errors_are_reported(api: &Api) -> Result<()> {
    let bad: Value = (0..50).map(|number| message(number, &json!({"type": "contact"}), "")).collect();
    let body = edited(conversation("twenty"), &[set("/messages", bad)]);
    let problem = api.post("/v1/assess", &body).await?.error_at("/messages/0/content")?;
    let count = problem["errors"].as_array().map_or(0, Vec::len);
    ensure!(count == 20, "{count} errors");
    Ok(())
}

async fn no_object(api: &Api) -> Result<()> {
    for body in [json!([]), json!("x"), json!(null), json!(1), json!([conversation("inside a list")])] {
        api.post("/v1/assess", &body).await?.error_at("")?;
    }
    Ok(())
}
