//! Transcripts for scoring-worker.

use anyhow::{Context as _, Result};
use assay_clients::{IngestClient, ServiceClient, http_client};
use assay_contracts::conversation::Conversation;
use assay_contracts::internal::{ReadTranscripts, TicketReference, Transcript};
use assay_contracts::tenant::Scope;
use assay_platform::auth::{Audience, ServiceClaims};
use assay_platform::runtime::new_id;
use serde_json::json;
use url::Url;

use assay_testkit::on_both_databases;

use crate::test_app::{DEADLINE, TestApp, conversation, conversation_of, message};

on_both_databases! { TestApp {
    transcript_is_the_conversation_with_resolved_agents,
    large_subject_is_shortened_in_transcripts,
    large_transcripts_are_read_in_pages_of_bytes,
    ticket_facts_are_read_without_transcripts,
    transcripts_of_unknown_or_foreign_tickets_are_omitted,
} }

const PATH: &str = "/internal/v1/transcripts";

async fn transcript_is_the_conversation_with_resolved_agents(app: TestApp) -> Result<()> {
    let one = app.registry.register(app.organization, "one")?;
    let two = app.registry.register(app.organization, "two")?;
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
    let id = app.import(&body).await?;

    let transcript = transcript(&app, &id).await?;
    assert_eq!(transcript.organization_id, app.organization);
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

/// Each transcript, event and export row repeats the subject.
async fn large_subject_is_shortened_in_transcripts(app: TestApp) -> Result<()> {
    for (ticket, length) in [("T-1", 1_000), ("T-2", 1_001), ("T-3", 400_000)] {
        let subject = "é".repeat(length);
        let mut body = conversation(ticket);
        body["subject"] = subject.clone().into();
        let id = app.import(&body).await?;
        let expected = if length > 1_000 { "é".repeat(1_000) + "…" } else { subject };
        let transcript = transcript(&app, &id).await?;
        assert_eq!(transcript.ticket.subject.as_ref(), Some(&expected), "{ticket}");
        assert_eq!(transcript.conversation.subject, Some(expected), "{ticket}");
    }
    Ok(())
}

/// Transcripts of 900 kB of text: incompressible, or stored in a few kilobytes.
async fn large_transcripts_are_read_in_pages_of_bytes(app: TestApp) -> Result<()> {
    for (name, text) in [("random", incompressible(900_000)), ("repeated", "x".repeat(900_000))] {
        let mut wanted = Vec::new();
        for number in 0..20 {
            let mut body = conversation(&format!("{name}-{number}"));
            body["messages"][0]["content"] = text.clone().into();
            wanted.push(reference(&app, &app.import(&body).await?)?);
        }
        let all: Vec<_> = wanted.iter().map(|ticket| ticket.ticket_id).collect();
        let mut found = Vec::new();
        while !wanted.is_empty() {
            let page = client(&app)?.read_transcripts(&wanted).await?;
            let bytes = serde_json::to_string(&page.transcripts)?.len();
            // A page ends with the transcript that reaches 8 MiB.
            assert!(bytes < 8 * 1024 * 1024 + 1_000_000, "{name}: a page of {bytes} bytes");
            assert!(!page.transcripts.is_empty());
            found.extend(page.transcripts.iter().map(|transcript| transcript.ticket.id));
            wanted = page.unread;
        }
        found.sort();
        assert_eq!(found, all, "{name}");
    }
    Ok(())
}

/// Base 64 of a generator's output.
fn incompressible(length: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let digit = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(DIGITS[(state >> 58) as usize])
    };
    std::iter::repeat_with(digit).take(length).collect()
}

async fn ticket_facts_are_read_without_transcripts(app: TestApp) -> Result<()> {
    let mut body = conversation("T-1");
    body["subject"] = "é".repeat(2_000).into();
    let id = app.import(&body).await?;
    let whole = transcript(&app, &id).await?;
    let facts = client(&app)?.read_ticket_facts(reference(&app, &id)?).await?.context("no facts")?;
    assert_eq!((facts.organization_id, &facts.ticket), (whole.organization_id, &whole.ticket));
    let foreign = TicketReference { organization_id: new_id(), ticket_id: id.parse()? };
    assert_eq!(client(&app)?.read_ticket_facts(foreign).await?, None);
    Ok(())
}

async fn transcripts_of_unknown_or_foreign_tickets_are_omitted(app: TestApp) -> Result<()> {
    let first = app.import(&conversation("T-1")).await?;
    let second = app.import(&conversation("T-2")).await?;
    let foreign = TicketReference { organization_id: new_id(), ticket_id: second.parse()? };
    let unknown = TicketReference { organization_id: app.organization, ticket_id: new_id() };
    let wanted = [reference(&app, &first)?, foreign, unknown];
    let transcripts = client(&app)?.read_transcripts(&wanted).await?.transcripts;
    let found: Vec<String> = transcripts.iter().map(|transcript| transcript.ticket.id.to_string()).collect();
    assert_eq!(found, [first]);
    assert!(client(&app)?.read_transcripts(&[]).await?.transcripts.is_empty());
    Ok(())
}

#[tokio::test]
async fn transcripts_require_a_service_token_and_at_most_100_ids() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let id = app.import(&conversation("T-1")).await?;
    let tickets = |count| {
        serde_json::to_string(&ReadTranscripts {
            tickets: vec![reference(&app, &id)?; count],
            facts_only: false,
        })
        .map_err(anyhow::Error::from)
    };
    assert_eq!(app.post(PATH, &app.claims(Scope::Admin), tickets(1)?).await?.status(), 401);
    assert_eq!(app.post(PATH, &ServiceClaims::Service, tickets(100)?).await?.status(), 200);
    assert_eq!(app.post(PATH, &ServiceClaims::Service, tickets(101)?).await?.status(), 400);
    assert_eq!(app.post(PATH, &ServiceClaims::Service, "{}".to_owned()).await?.status(), 400);
    Ok(())
}

/// The transcript of a ticket that has one.
pub async fn transcript(app: &TestApp, id: &str) -> Result<Transcript> {
    let answer = client(app)?.read_transcripts(&[reference(app, id)?]).await?;
    answer.transcripts.into_iter().next().context("no transcript")
}

pub fn reference(app: &TestApp, id: &str) -> Result<TicketReference> {
    Ok(TicketReference { organization_id: app.organization, ticket_id: id.parse()? })
}

pub fn client(app: &TestApp) -> Result<IngestClient> {
    let (http, url) = (http_client()?, Url::parse(&app.address)?);
    Ok(IngestClient::new(ServiceClient::new(http, url, Audience::Ingest, app.tokens.clone(), DEADLINE)))
}
