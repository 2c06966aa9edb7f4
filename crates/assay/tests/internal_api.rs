//! `proto-docs/openapi/internal.json` is written by hand: its examples have the shape of its schemas, and of the types of both
//! ends. That it lists every route is checked by the end-to-end scenario `service_tokens`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod beside;

use assay_contracts::agent::{Agent, NewAgent};
use assay_contracts::conversation::Conversation;
use assay_contracts::export::{DownloadAddress, Export, NewExport};
use assay_contracts::internal::{
    Deletion, FindAgents, FoundAgents, InterestPage, Progress, ReadTranscripts, ResolveKey, ResolvedKey,
    RetentionPage, Transcripts,
};
use assay_contracts::page::Page;
use assay_contracts::ticket::{ImportReceipt, Ticket};
use assay_contracts::webhook::{
    CreatedWebhook, NewWebhook, Webhook, WebhookChange, WebhookDelivery, WebhookDeliveryDetails,
    WebhookSecret,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use beside::PublicApi;

const DOCUMENT: &str = include_str!("../../../proto-docs/openapi/internal.json");

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

/// Operation id, and whether it is what is sent (or what is answered), schema and example of every JSON body.
fn bodies(document: &Value) -> Vec<(String, bool, Value, Value)> {
    let mut bodies = Vec::new();
    let items = document["paths"].as_object().unwrap().values();
    for operation in items.flat_map(|item| item.as_object().unwrap().values()) {
        let id = operation["operationId"].as_str().unwrap();
        let responses = operation["responses"].as_object().unwrap().values().map(|body| (false, body));
        for (is_sent, body) in responses.chain([(true, &operation["requestBody"])]) {
            let content = &body["content"]["application/json"];
            if content.is_object() {
                let example = content.get("example").unwrap_or_else(|| panic!("{id} has no example"));
                bodies.push((id.to_owned(), is_sent, content["schema"].clone(), example.clone()));
            }
        }
    }
    bodies
}

#[test]
fn examples_have_the_shape_of_their_schemas() {
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
fn both_ends_read_the_examples() {
    for (id, is_sent, _, example) in bodies(&document()) {
        let read = match (id.as_str(), is_sent) {
            ("resolveKey", true) => same::<ResolveKey>(&example),
            ("resolveKey", false) => same::<ResolvedKey>(&example),
            ("findAgents", true) => same::<FindAgents>(&example),
            ("findAgents", false) => same::<FoundAgents>(&example),
            ("listRetention", false) => same::<RetentionPage>(&example),
            ("readTranscripts", true) => same::<ReadTranscripts>(&example),
            ("readTranscripts", false) => serde_json::from_value::<Transcripts>(example.clone()).is_ok(),
            ("findDeletion", false) => same::<Deletion>(&example),
            ("readProgress", false) => same::<Progress>(&example),
            ("createAgent", true) => NewAgent::parse(example.to_string().as_bytes()).is_ok(),
            ("createAgent", false) => same::<Agent>(&example),
            ("acceptConversation", true) => Conversation::parse(example.to_string().as_bytes()).is_ok(),
            ("acceptConversation", false) => same::<ImportReceipt>(&example),
            ("readTicket", false) => same::<Ticket>(&example),
            // `openapi.rs` holds it against the scorer.
            ("readEvaluation", false) => example["status"] == "scored",
            ("listExports", false) => same::<Page<Export>>(&example),
            ("createExport", true) => NewExport::parse(example.to_string().as_bytes()).is_ok(),
            ("createExport" | "readExport", false) => same::<Export>(&example),
            ("downloadExport", false) => same::<DownloadAddress>(&example),
            ("listInterest", false) => same::<InterestPage>(&example),
            ("createWebhook", true) => NewWebhook::parse(example.to_string().as_bytes()).is_ok(),
            ("createWebhook", false) => same::<CreatedWebhook>(&example),
            ("listWebhooks", false) => same::<Page<Webhook>>(&example),
            ("changeWebhook", true) => WebhookChange::parse(example.to_string().as_bytes()).is_ok(),
            ("readWebhook" | "changeWebhook", false) => same::<Webhook>(&example),
            ("readWebhookSecret" | "rotateWebhookSecret", false) => same::<WebhookSecret>(&example),
            ("listWebhookDeliveries", false) => same::<Page<WebhookDelivery>>(&example),
            ("readWebhookDelivery", false) => same::<WebhookDeliveryDetails>(&example),
            ("testWebhook" | "replayWebhookDelivery", false) => same::<WebhookDelivery>(&example),
            (other, _) => panic!("{other}: which types does it have?"),
        };
        assert!(read, "{id}: {example}");
    }
}

/// Whether it is read and written again as it was.
fn same<T: DeserializeOwned + Serialize>(example: &Value) -> bool {
    let read: T = serde_json::from_value(example.clone()).unwrap();
    serde_json::to_value(&read).unwrap() == *example
}
