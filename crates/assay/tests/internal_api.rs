//! `proto-docs/openapi/internal.json` is written by hand. Its examples match its schemas and the types of client and server.
//! The end-to-end scenario `service_tokens` checks that it lists every route.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod public_api;

use assay_contracts::agent::{Agent, NewAgent};
use assay_contracts::console::{
    AgentList, BeginSession, FindSession, FoundSession, KeyList, NewKey, NewKeyRequest, SessionList,
    SignInOutcome,
};
use assay_contracts::conversation::Conversation;
use assay_contracts::evaluations::{EvaluationPage, Neighbours, Summary, TicketTranscript};
use assay_contracts::export::{DownloadAddress, Export, NewExport};
use assay_contracts::internal::{
    Deletion, FindAgents, FoundAgents, Progress, ReadTranscripts, ResolveKey, ResolvedKey, RetentionPage,
    SubscribersPage, TicketCount, Transcripts,
};
use assay_contracts::page::Page;
use assay_contracts::refusal::ImportRefusals;
use assay_contracts::ticket::{ImportReceipt, Ticket};
use assay_contracts::webhook::{
    CreatedWebhook, NewWebhook, Webhook, WebhookChange, WebhookDelivery, WebhookDeliveryDetails,
    WebhookSecret,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use Body::{Request, Response};
use public_api::PublicApi;

const DOCUMENT: &str = include_str!("../../../proto-docs/openapi/internal.json");

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

#[derive(Clone, Copy)]
enum Body {
    Request,
    Response,
}

/// Operation id, kind, schema and example of every JSON body.
fn bodies(document: &Value) -> Vec<(String, Body, Value, Value)> {
    let mut bodies = Vec::new();
    let items = document["paths"].as_object().unwrap().values();
    for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
        let id = operation["operationId"].as_str().unwrap();
        let responses = operation["responses"].as_object().unwrap().values().map(|body| (Response, body));
        for (kind, body) in responses.chain([(Request, &operation["requestBody"])]) {
            let content = &body["content"]["application/json"];
            if content.is_object() {
                let example = content.get("example").unwrap_or_else(|| panic!("{id} has no example"));
                bodies.push((id.to_owned(), kind, content["schema"].clone(), example.clone()));
            }
        }
    }
    bodies
}

#[test]
fn internal_api_examples_match_their_schemas() {
    let document = document();
    let bodies = bodies(&document);
    assert!(bodies.len() >= 20, "{}", bodies.len());
    for (id, _, schema, example) in bodies {
        let mut whole = schema.as_object().unwrap().clone();
        whole.insert("components".to_owned(), document["components"].clone());
        let validator = jsonschema::draft202012::options()
            .should_validate_formats(true)
            .with_base_uri("https://docs.invalid/openapi/internal.json")
            .with_retriever(PublicApi)
            .build(&Value::Object(whole))
            .unwrap_or_else(|error| panic!("{id}: {error}"));
        let faults: Vec<_> = validator.iter_errors(&example).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{id}: {faults:?}");
    }
}

#[test]
fn internal_api_examples_are_read_by_client_and_server() {
    for (id, kind, _, example) in bodies(&document()) {
        let is_read = match (id.as_str(), kind) {
            ("resolveKey", Request) => round_trips::<ResolveKey>(&example),
            ("resolveKey", Response) => round_trips::<ResolvedKey>(&example),
            ("listKeys", Response) => round_trips::<KeyList>(&example),
            ("createKey", Request) => round_trips::<NewKeyRequest>(&example),
            ("createKey", Response) => round_trips::<NewKey>(&example),
            ("listSessions", Response) => round_trips::<SessionList>(&example),
            ("beginSession", Request) => round_trips::<BeginSession>(&example),
            ("beginSession", Response) => round_trips::<SignInOutcome>(&example),
            ("findSession", Request) => round_trips::<FindSession>(&example),
            ("findSession", Response) => round_trips::<FoundSession>(&example),
            ("listAgents", Response) => round_trips::<AgentList>(&example),
            ("findAgents", Request) => round_trips::<FindAgents>(&example),
            ("findAgents", Response) => round_trips::<FoundAgents>(&example),
            ("listRetention", Response) => round_trips::<RetentionPage>(&example),
            ("readTranscripts", Request) => round_trips::<ReadTranscripts>(&example),
            ("readTranscripts", Response) => serde_json::from_value::<Transcripts>(example.clone()).is_ok(),
            ("findDeletion", Response) => round_trips::<Deletion>(&example),
            ("reportRefusals", Request) | ("listRefusals", Response) => {
                round_trips::<ImportRefusals>(&example)
            }
            ("readProgress", Response) => round_trips::<Progress>(&example),
            ("createAgent", Request) => NewAgent::parse(example.to_string().as_bytes()).is_ok(),
            ("createAgent", Response) => round_trips::<Agent>(&example),
            ("acceptConversation", Request) => Conversation::parse(example.to_string().as_bytes()).is_ok(),
            ("acceptConversation", Response) => round_trips::<ImportReceipt>(&example),
            ("readTicket", Response) => round_trips::<Ticket>(&example),
            // `openapi.rs` compares it with the scorer.
            ("readEvaluation", Response) => example["status"] == "scored",
            ("listExports", Response) => round_trips::<Page<Export>>(&example),
            ("createExport", Request) => NewExport::parse(example.to_string().as_bytes()).is_ok(),
            ("createExport" | "readExport", Response) => round_trips::<Export>(&example),
            ("downloadExport", Response) => round_trips::<DownloadAddress>(&example),
            ("countTickets" | "countEvaluations", Response) => round_trips::<TicketCount>(&example),
            ("readTranscript", Response) => round_trips::<TicketTranscript>(&example),
            ("listEvaluations", Response) => round_trips::<EvaluationPage>(&example),
            ("summarizeEvaluations", Response) => round_trips::<Summary>(&example),
            ("findNeighbours", Response) => round_trips::<Neighbours>(&example),
            ("listInterest", Response) => round_trips::<SubscribersPage>(&example),
            ("createWebhook", Request) => NewWebhook::parse(example.to_string().as_bytes()).is_ok(),
            ("createWebhook", Response) => round_trips::<CreatedWebhook>(&example),
            ("listWebhooks", Response) => round_trips::<Page<Webhook>>(&example),
            ("changeWebhook", Request) => WebhookChange::parse(example.to_string().as_bytes()).is_ok(),
            ("readWebhook" | "changeWebhook", Response) => round_trips::<Webhook>(&example),
            ("readWebhookSecret" | "rotateWebhookSecret", Response) => round_trips::<WebhookSecret>(&example),
            ("listWebhookDeliveries", Response) => round_trips::<Page<WebhookDelivery>>(&example),
            ("readWebhookDelivery", Response) => round_trips::<WebhookDeliveryDetails>(&example),
            ("testWebhook" | "replayWebhookDelivery", Response) => round_trips::<WebhookDelivery>(&example),
            (other, _) => panic!("{other}: add its types to this test"),
        };
        assert!(is_read, "{id}: {example}");
    }
}

/// Whether the example survives parsing and serialising.
fn round_trips<T: DeserializeOwned + Serialize>(example: &Value) -> bool {
    let read: T = serde_json::from_value(example.clone()).unwrap();
    serde_json::to_value(&read).unwrap() == *example
}
