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

use public_api::PublicApi;

const DOCUMENT: &str = include_str!("../../../proto-docs/openapi/internal.json");

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

/// Operation id, whether it is a request (else a response), schema and example of every JSON body.
fn bodies(document: &Value) -> Vec<(String, bool, Value, Value)> {
    let mut bodies = Vec::new();
    let items = document["paths"].as_object().unwrap().values();
    for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
        let id = operation["operationId"].as_str().unwrap();
        let responses = operation["responses"].as_object().unwrap().values().map(|body| (false, body));
        for (is_request, body) in responses.chain([(true, &operation["requestBody"])]) {
            let content = &body["content"]["application/json"];
            if content.is_object() {
                let example = content.get("example").unwrap_or_else(|| panic!("{id} has no example"));
                bodies.push((id.to_owned(), is_request, content["schema"].clone(), example.clone()));
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
    for (id, is_request, _, example) in bodies(&document()) {
        let read = match (id.as_str(), is_request) {
            ("resolveKey", true) => round_trips::<ResolveKey>(&example),
            ("resolveKey", false) => round_trips::<ResolvedKey>(&example),
            ("listKeys", false) => round_trips::<KeyList>(&example),
            ("createKey", true) => round_trips::<NewKeyRequest>(&example),
            ("createKey", false) => round_trips::<NewKey>(&example),
            ("listSessions", false) => round_trips::<SessionList>(&example),
            ("beginSession", true) => round_trips::<BeginSession>(&example),
            ("beginSession", false) => round_trips::<SignInOutcome>(&example),
            ("findSession", true) => round_trips::<FindSession>(&example),
            ("findSession", false) => round_trips::<FoundSession>(&example),
            ("listAgents", false) => round_trips::<AgentList>(&example),
            ("findAgents", true) => round_trips::<FindAgents>(&example),
            ("findAgents", false) => round_trips::<FoundAgents>(&example),
            ("listRetention", false) => round_trips::<RetentionPage>(&example),
            ("readTranscripts", true) => round_trips::<ReadTranscripts>(&example),
            ("readTranscripts", false) => serde_json::from_value::<Transcripts>(example.clone()).is_ok(),
            ("findDeletion", false) => round_trips::<Deletion>(&example),
            ("reportRefusals", true) | ("listRefusals", false) => round_trips::<ImportRefusals>(&example),
            ("readProgress", false) => round_trips::<Progress>(&example),
            ("createAgent", true) => NewAgent::parse(example.to_string().as_bytes()).is_ok(),
            ("createAgent", false) => round_trips::<Agent>(&example),
            ("acceptConversation", true) => Conversation::parse(example.to_string().as_bytes()).is_ok(),
            ("acceptConversation", false) => round_trips::<ImportReceipt>(&example),
            ("readTicket", false) => round_trips::<Ticket>(&example),
            // `openapi.rs` compares it with the scorer.
            ("readEvaluation", false) => example["status"] == "scored",
            ("listExports", false) => round_trips::<Page<Export>>(&example),
            ("createExport", true) => NewExport::parse(example.to_string().as_bytes()).is_ok(),
            ("createExport" | "readExport", false) => round_trips::<Export>(&example),
            ("downloadExport", false) => round_trips::<DownloadAddress>(&example),
            ("countTickets" | "countEvaluations", false) => round_trips::<TicketCount>(&example),
            ("readTranscript", false) => round_trips::<TicketTranscript>(&example),
            ("listEvaluations", false) => round_trips::<EvaluationPage>(&example),
            ("summarizeEvaluations", false) => round_trips::<Summary>(&example),
            ("findNeighbours", false) => round_trips::<Neighbours>(&example),
            ("listInterest", false) => round_trips::<SubscribersPage>(&example),
            ("createWebhook", true) => NewWebhook::parse(example.to_string().as_bytes()).is_ok(),
            ("createWebhook", false) => round_trips::<CreatedWebhook>(&example),
            ("listWebhooks", false) => round_trips::<Page<Webhook>>(&example),
            ("changeWebhook", true) => WebhookChange::parse(example.to_string().as_bytes()).is_ok(),
            ("readWebhook" | "changeWebhook", false) => round_trips::<Webhook>(&example),
            ("readWebhookSecret" | "rotateWebhookSecret", false) => round_trips::<WebhookSecret>(&example),
            ("listWebhookDeliveries", false) => round_trips::<Page<WebhookDelivery>>(&example),
            ("readWebhookDelivery", false) => round_trips::<WebhookDeliveryDetails>(&example),
            ("testWebhook" | "replayWebhookDelivery", false) => round_trips::<WebhookDelivery>(&example),
            (other, _) => panic!("{other}: add its types to this test"),
        };
        assert!(read, "{id}: {example}");
    }
}

/// Whether the example survives parsing and serialising.
fn round_trips<T: DeserializeOwned + Serialize>(example: &Value) -> bool {
    let read: T = serde_json::from_value(example.clone()).unwrap();
    serde_json::to_value(&read).unwrap() == *example
}
