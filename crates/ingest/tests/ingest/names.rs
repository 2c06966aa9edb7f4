//! Display names of the authors of a source system.

use anyhow::Result;
use assay_contracts::conversation::Author;
use serde_json::{Value, json};

use assay_testkit::{on_both_databases, texts_on};

use crate::test_app::{TestApp, conversation_of, message};
use crate::transcripts::transcript;

on_both_databases! { TestApp {
    latest_name_by_message_time_then_by_arrival_is_kept,
    names_are_kept_per_author_type_source_and_account,
    mixed_author_is_never_recorded,
    agent_name_is_recorded_under_its_external_id,
} }

const NAMES: &str = "SELECT author_type || ' ' || external_id || ' ' || name AS value FROM participants
                     ORDER BY author_type, external_id, source, source_account_id, name";

async fn latest_name_by_message_time_then_by_arrival_is_kept(app: TestApp) -> Result<()> {
    let steps = [
        (5_000, Some("First"), "First"),
        (4_000, Some("Older"), "First"),
        (5_000, Some("Same moment"), "Same moment"),
        (9_000, None, "Same moment"),
        (6_000, Some("Later"), "Later"),
    ];
    for (number, (timestamp, name, expected)) in steps.into_iter().enumerate() {
        let mut author = json!({"type": "contact", "external_id": "c"});
        if let Some(name) = name {
            author["name"] = name.into();
        }
        let messages = json!([message("1", timestamp, author)]);
        app.import(&conversation_of(&format!("T-{number}"), messages)).await?;
        assert_eq!(texts_on(&app.database, NAMES).await?, [format!("contact c {expected}")]);
    }
    Ok(())
}

async fn names_are_kept_per_author_type_source_and_account(app: TestApp) -> Result<()> {
    let body_of = |number: u32, author_type: &str, extra: Value| {
        let author = json!({"type": author_type, "external_id": "x", "name": format!("N{number}")});
        let mut body = conversation_of(&format!("T-{number}"), json!([message("1", 1, author)]));
        if let (Some(body), Some(extra)) = (body.as_object_mut(), extra.as_object()) {
            body.extend(extra.clone());
        }
        body
    };
    app.import(&body_of(1, "contact", json!({}))).await?;
    app.import(&body_of(2, "teammate", json!({}))).await?;
    app.import(&body_of(3, "contact", json!({"source": "zendesk"}))).await?;
    app.import(&body_of(4, "contact", json!({"source": "zendesk", "source_account_id": "a"}))).await?;
    let mut names = texts_on(&app.database, NAMES).await?;
    names.sort();
    assert_eq!(names, ["contact x N1", "contact x N3", "contact x N4", "teammate x N2"]);
    Ok(())
}

async fn mixed_author_is_never_recorded(app: TestApp) -> Result<()> {
    let messages = json!([
        message("1", 1, json!({"type": "mixed", "name": "Several"})),
        message("2", 2, json!({"type": "system", "external_id": "s", "name": "Workflow"})),
    ]);
    let id = app.import(&conversation_of("T-1", messages)).await?;
    assert_eq!(texts_on(&app.database, NAMES).await?, ["system s Workflow"]);
    let stored = transcript(&app, &id).await?;
    assert_eq!(stored.conversation.messages[0].author, Author::Mixed, "without a name");
    Ok(())
}

async fn agent_name_is_recorded_under_its_external_id(app: TestApp) -> Result<()> {
    let agent = app.registry.register(app.organization, "bot")?;
    let messages = json!([message("1", 1, json!({"type": "ai", "id": agent.id, "name": "Robbie"}))]);
    app.import(&conversation_of("T-1", messages)).await?;
    assert_eq!(texts_on(&app.database, NAMES).await?, ["ai bot Robbie"]);
    Ok(())
}
