//! `proto-docs/asyncapi/assay.json` agrees with the code: its channels are the topics, and its examples are valid events.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod public_api;

use assay_contracts::event::{
    AgentCreated, ConversationAccepted, ConversationDeleted, ConversationEvaluated, ConversationsExpired,
    EvaluationDeleted, Event, ExportRequested,
};
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use serde_json::Value;

use public_api::PublicApi;

const DOCUMENT: &str = include_str!("../../../proto-docs/asyncapi/assay.json");

fn document() -> Value {
    serde_json::from_str(DOCUMENT).unwrap()
}

/// Parses the example of an event and serialises it again: nothing may be lost or added.
fn check_event<E: Event>(document: &Value, message: &str) {
    let topic = E::TOPIC.name;
    assert_eq!(document["channels"][topic]["address"], topic);
    let described = &document["components"]["messages"][message];
    assert_eq!(described["payload"]["properties"]["type"]["const"], topic);
    let envelope = &described["examples"][0]["payload"];
    assert_eq!(envelope["type"], topic);
    let event: E = serde_json::from_value(envelope["data"].clone()).unwrap();
    assert_eq!(serde_json::to_value(&event).unwrap(), envelope["data"], "{topic}");
    let validator = jsonschema::draft202012::options()
        .should_validate_formats(true)
        .with_base_uri("https://docs.invalid/asyncapi/assay.json")
        .with_retriever(PublicApi)
        .build(&described["payload"])
        .unwrap();
    for example in described["examples"].as_array().unwrap() {
        let faults: Vec<_> =
            validator.iter_errors(&example["payload"]).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{topic}: {faults:?}");
    }
    let without_data = serde_json::json!({"type": topic});
    assert!(!validator.is_valid(&without_data), "the schema of {topic} accepts anything");
}

#[test]
fn asyncapi_lists_every_event_of_this_version() {
    let document = document();
    check_event::<ConversationAccepted>(&document, "ConversationAccepted");
    check_event::<ConversationEvaluated>(&document, "ConversationEvaluated");
    check_event::<ConversationDeleted>(&document, "ConversationDeleted");
    check_event::<ConversationsExpired>(&document, "ConversationsExpired");
    check_event::<EvaluationDeleted>(&document, "EvaluationDeleted");
    check_event::<ExportRequested>(&document, "ExportRequested");
    check_event::<AgentCreated>(&document, "AgentCreated");
    check_event::<EvaluationAnnounced>(&document, "EvaluationAnnounced");
    check_event::<EvaluationRetracted>(&document, "EvaluationRetracted");
    check_event::<ExportFinished>(&document, "ExportFinished");
    assert_eq!(document["channels"].as_object().unwrap().len(), 10);
}
