//! What the scoring worker reads.

use anyhow::{Context as _, Result};
use assay_clients::{HttpSettings, IngestClient, Service, http_client};
use assay_contracts::conversation::Conversation;
use assay_contracts::internal::{ReadTranscripts, TicketReference, Transcript};
use assay_contracts::tenant::Scope;
use assay_platform::auth::{Audience, ServiceClaims};
use assay_platform::runtime::new_id;
use serde_json::json;
use url::Url;

use assay_testkit::on_both_databases;

use crate::removals::{delete, run};
use crate::stage::{DEADLINE, Stage, conversation, conversation_of, message, query};

on_both_databases! { Stage {
    a_transcript_is_the_conversation_with_its_agents_resolved,
    only_tickets_that_exist_in_their_organization_are_answered,
    what_the_release_before_stored_is_read_and_removed,
    what_the_release_before_stored_and_is_no_transcript_is_told_apart,
} }

const PATH: &str = "/internal/v1/transcripts";

async fn a_transcript_is_the_conversation_with_its_agents_resolved(stage: Stage) -> Result<()> {
    let one = stage.registry.register(stage.organization, "one")?;
    let two = stage.registry.register(stage.organization, "two")?;
    let messages = json!([
        message("1", 1_000, json!({"type": "contact", "external_id": "c", "name": "Zoë 🦀"})),
        message("2", 2_000, json!({"type": "ai", "external_id": "two", "name": "Robbie"})),
        message("3", 2_000, json!({"type": "ai", "id": one.id})),
        message("4", 3_000, json!({"type": "mixed", "name": "Several"})),
    ]);
    let mut body = conversation_of("T-1", messages);
    body["subject"] = "Refund".into();
    body["source"] = "zendesk".into();
    body["source_account_id"] = "acme".into();
    body["messages"][0]["kind"] = "comment".into();
    body["messages"][1]["ai_tool"] = "helpScout".into();
    let id = stage.accepted(&body).await?;

    let transcript = transcript(&stage, &id).await?;
    assert_eq!(transcript.organization_id, stage.organization);
    let ticket = &transcript.ticket;
    assert_eq!((ticket.id.to_string(), ticket.external_id.as_str()), (id, "T-1"));
    assert_eq!((ticket.source.as_str(), ticket.source_account_id.as_deref()), ("zendesk", Some("acme")));
    assert_eq!((ticket.started_at.as_millis(), ticket.ended_at.as_millis()), (1_000, 3_000));
    assert_eq!(ticket.agents, [two.clone(), one.clone()], "in order of first appearance");

    body["messages"][1]["author"] =
        json!({"type": "ai", "id": two.id, "external_id": "two", "name": "Robbie"});
    body["messages"][2]["author"] = json!({"type": "ai", "id": one.id, "external_id": "one"});
    let expected =
        Conversation::parse(body.to_string().as_bytes()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    assert_eq!(transcript.conversation, expected);
    Ok(())
}

async fn only_tickets_that_exist_in_their_organization_are_answered(stage: Stage) -> Result<()> {
    let first = stage.accepted(&conversation("T-1")).await?;
    let second = stage.accepted(&conversation("T-2")).await?;
    let foreign = TicketReference { organization_id: new_id(), ticket_id: second.parse()? };
    let unknown = TicketReference { organization_id: stage.organization, ticket_id: new_id() };
    let wanted = [reference(&stage, &first)?, foreign, unknown];
    let transcripts = client(&stage)?.read_transcripts(&wanted).await?.transcripts;
    let found: Vec<String> = transcripts.iter().map(|transcript| transcript.ticket.id.to_string()).collect();
    assert_eq!(found, [first]);
    assert!(client(&stage)?.read_transcripts(&[]).await?.transcripts.is_empty());
    Ok(())
}

async fn what_the_release_before_stored_is_read_and_removed(stage: Stage) -> Result<()> {
    let contact = json!({"type": "contact", "external_id": "c", "name": "Zoë"});
    let messages = json!([message("1", 1_000, contact)]);
    let id = stage.accepted(&conversation_of("T-1", messages.clone())).await?;
    let packed = transcript(&stage, &id).await?;
    let mut stored = messages;
    stored[0]["kind"] = "message".into();
    store_as_the_release_before(&stage, &id, &stored.to_string()).await?;
    assert_eq!(transcript(&stage, &id).await?, packed);

    assert_eq!(delete(&stage, stage.organization, &id).await?, 204);
    let names = query(&stage.database, "SELECT name AS value FROM participants").await?;
    assert_eq!(names, Vec::<String>::new());
    Ok(())
}

async fn what_the_release_before_stored_and_is_no_transcript_is_told_apart(stage: Stage) -> Result<()> {
    for json in ["{}", "null", r#"[{"content":"x"}]"#] {
        let id = stage.accepted(&conversation(json)).await?;
        store_as_the_release_before(&stage, &id, json).await?;
        let answer = client(&stage)?.read_transcripts(&[reference(&stage, &id)?]).await?;
        assert_eq!((answer.transcripts.len(), answer.unreadable.len()), (0, 1), "{json}");
    }
    Ok(())
}

async fn store_as_the_release_before(stage: &Stage, id: &str, messages: &str) -> Result<()> {
    let set = format!("UPDATE conversations SET packed = NULL, messages = '{messages}' WHERE id = '{id}'");
    run(&stage.database, set).await
}

#[tokio::test]
async fn transcripts_are_for_services_and_a_hundred_at_once() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let id = stage.accepted(&conversation("T-1")).await?;
    let tickets = |count| {
        serde_json::to_string(&ReadTranscripts { tickets: vec![reference(&stage, &id)?; count] })
            .map_err(anyhow::Error::from)
    };
    assert_eq!(stage.post(PATH, &stage.claims(Scope::Admin), tickets(1)?).await?.status(), 401);
    assert_eq!(stage.post(PATH, &ServiceClaims::Service, tickets(100)?).await?.status(), 200);
    assert_eq!(stage.post(PATH, &ServiceClaims::Service, tickets(101)?).await?.status(), 400);
    assert_eq!(stage.post(PATH, &ServiceClaims::Service, "{}".to_owned()).await?.status(), 400);
    Ok(())
}

/// The transcript of a ticket that has one.
pub async fn transcript(stage: &Stage, id: &str) -> Result<Transcript> {
    let answer = client(stage)?.read_transcripts(&[reference(stage, id)?]).await?;
    answer.transcripts.into_iter().next().context("no transcript")
}

fn reference(stage: &Stage, id: &str) -> Result<TicketReference> {
    Ok(TicketReference { organization_id: stage.organization, ticket_id: id.parse()? })
}

fn client(stage: &Stage) -> Result<IngestClient> {
    let (http, url) = (http_client(HttpSettings::default())?, Url::parse(&stage.address)?);
    Ok(IngestClient::new(Service::new(http, url, Audience::Ingest, stage.tokens.clone(), DEADLINE)))
}
