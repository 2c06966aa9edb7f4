//! Backward compatibility: events of earlier releases (in queues and outboxes during an upgrade) and request bodies of old
//! clients are still read. Files in `compatibility/` are added with a release and never changed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use assay_contracts::agent::NewAgent;
use assay_contracts::conversation::Conversation;
use assay_contracts::event::{
    AgentCreated, ConversationAccepted, ConversationDeleted, ConversationEvaluated, ConversationsExpired,
    EvaluationDeleted, Event, ExportRequested,
};
use assay_contracts::export::NewExport;
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_contracts::webhook::NewWebhook;
use assay_messaging::Delivery;

fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compatibility").join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), fs::read(path).unwrap())).collect()
}

#[test]
fn events_of_earlier_releases_are_read() {
    let mut topics = Vec::new();
    for (name, payload) in files("events") {
        let delivery = Delivery::parse(&payload, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let topic = delivery.topic.clone();
        let decoded = match topic.as_str() {
            "agent.created.v1" => decode::<AgentCreated>(&delivery),
            "conversation.accepted.v1" => decode::<ConversationAccepted>(&delivery),
            "conversation.deleted.v1" => decode::<ConversationDeleted>(&delivery),
            "conversation.evaluated.v1" => decode::<ConversationEvaluated>(&delivery),
            "conversations.expired.v1" => decode::<ConversationsExpired>(&delivery),
            "evaluation.deleted.v1" => decode::<EvaluationDeleted>(&delivery),
            "evaluation.announced.v1" => decode::<EvaluationAnnounced>(&delivery),
            "evaluation.retracted.v1" => decode::<EvaluationRetracted>(&delivery),
            "export.finished.v1" => decode::<ExportFinished>(&delivery),
            "export.requested.v1" => decode::<ExportRequested>(&delivery),
            other => Err(format!("no consumer reads events {other}")),
        };
        decoded.unwrap_or_else(|error| panic!("{name}: {error}"));
        topics.push(topic);
    }
    topics.dedup();
    assert_eq!(topics.len(), 10, "every topic has a file: {topics:?}");
}

fn decode<E: Event>(delivery: &Delivery) -> Result<(), String> {
    delivery.decode::<E>().map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn request_bodies_of_earlier_releases_are_accepted() {
    let bodies = files("bodies");
    assert!(bodies.len() >= 6, "{}", bodies.len());
    for (name, body) in bodies {
        let parsed = match name.split('-').next().unwrap() {
            "assess" => Conversation::parse(&body).map(|_| ()),
            "agents" => NewAgent::parse(&body).map(|_| ()),
            "exports" => NewExport::parse(&body).map(|_| ()),
            "webhooks" => NewWebhook::parse(&body).map(|_| ()),
            other => panic!("{name}: {other} is no kind of body"),
        };
        assert!(parsed.is_ok(), "{name}: {parsed:?}");
    }
}
