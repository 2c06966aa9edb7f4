//! Bodies of `POST /v1/assess`: a refusal for each kind of rule, and valid bodies at the limits, which the database has to hold.
//! The rules one by one: `crates/contracts/tests/parse_conversation.rs`.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::harness::{Api, Cases, Edit, Stack, conversation, edited, message, messages, set, unset};

/// Every violated rule is refused with the field's pointer, and the identity stays free for a valid body.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api()?;
    api.register("bot").await?;
    let mut cases = Cases::default();
    for (number, (pointer, edits)) in refusals().into_iter().enumerate() {
        let outcome = expect_refused(&api, &format!("refused-{number}"), &edits, pointer).await;
        cases.check(format!("{number}: {pointer}"), outcome);
    }
    for (number, (name, edits)) in acceptable().into_iter().enumerate() {
        let body = edited(conversation(&format!("accepted-{number}")), &edits);
        cases.check(name, api.import(&body).await.map(drop));
    }
    cases.check("at most twenty errors", at_most_twenty_errors_are_reported(&api).await);
    cases.check("no object", no_object(&api).await);
    cases.finish()
}

async fn expect_refused(api: &Api, ticket: &str, edits: &[Edit], pointer: &str) -> Result<()> {
    let good = conversation(ticket);
    let bad = edited(good.clone(), edits);
    ensure!(bad != good, "the case changes nothing");
    api.post("/v1/assess", &bad).await?.error_at(pointer)?;
    // A refused request does not use the identity up.
    api.import(&good).await.context("the identity is not free after the refusal").map(drop)
}

/// The pointer of the expected error, and the edits of a valid body.
fn refusals() -> Vec<(&'static str, Vec<Edit>)> {
    let wrong = |pointer, value: Value| (pointer, vec![set(pointer, value)]);
    let ai = set("/messages/1/author", json!({"type": "ai", "external_id": "bot"}));
    vec![
        ("/messages/1/content", vec![unset("/messages/1/content")]),
        wrong("/messages/0/external_id", json!(null)),
        wrong("/subject", json!(7)),
        wrong("/messages/0/author", json!([])),
        wrong("/messages/0/author/external_id", json!("")),
        wrong("/messages/0/author/name", json!("😀".repeat(1_025))),
        wrong("/messages/1/content", json!("a\0")),
        wrong("/messages", messages(51)),
        wrong("/messages/0/kind", json!("Message")),
        wrong("/messages/0/author/type", json!("bot")),
        ("/messages/1/ai_tool", vec![ai, set("/messages/1/ai_tool", "helpscout")]),
        wrong("/messages/2/external_id", json!("m-0")),
        wrong("/messages/1/timestamp", json!(1_763_599_999_999_i64)),
        wrong("/messages/0/timestamp", json!(253_402_300_800_000_i64)),
        wrong("/messages/1/author", json!({"type": "ai", "name": "Bot"})),
    ]
}

/// Name and edits of a valid conversation.
fn acceptable() -> Vec<(&'static str, Vec<Edit>)> {
    let longest_names = [
        "/ticket_id",
        "/source",
        "/source_account_id",
        "/messages/0/external_id",
        "/messages/0/author/external_id",
        "/messages/0/author/name",
    ];
    let every_author = [
        json!({"type": "contact", "external_id": "c", "id": 7}),
        json!({"type": "teammate", "external_id": "t"}),
        json!({"type": "ai", "external_id": "bot", "name": "Bot"}),
        json!({"type": "system"}),
        json!({"type": "system", "external_id": "s", "name": "Router"}),
        json!({"type": "mixed", "name": "Thread"}),
    ];
    let of_every_author: Value =
        every_author.iter().enumerate().map(|(number, author)| message(number, author, "Hello")).collect();
    vec![
        ("50 messages", vec![set("/messages", messages(50))]),
        ("names of 1,024 characters", longest_names.map(|pointer| set(pointer, "😀".repeat(1_024))).into()),
        ("a megabyte of text", vec![set("/messages/1/content", "word ".repeat(200_000))]),
        (
            "the first and the last moment",
            vec![set("/messages/0/timestamp", 0), set("/messages/2/timestamp", 253_402_300_799_999_i64)],
        ),
        (
            "every variant of an author, an AI tool and a comment",
            vec![
                set("/messages", of_every_author),
                set("/messages/2/ai_tool", "helpScout"),
                set("/messages/1/kind", "comment"),
            ],
        ),
    ]
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
