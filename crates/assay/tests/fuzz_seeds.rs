//! Fuzzing seeds that should be valid are valid: a seed that the first check refuses is useless.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use assay_contracts::agent::NewAgent;
use assay_contracts::conversation::Conversation;
use assay_contracts::event::{
    AgentCreated, ConversationAccepted, ConversationDeleted, ConversationEvaluated, ConversationsExpired,
    EvaluationDeleted, Event, ExportRequested,
};
use assay_contracts::export::NewExport;
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted, ExportFinished};
use assay_contracts::webhook::NewWebhook;
use assay_messaging::{Delivery, OutgoingEvent};

fn seed(name: &str) -> Result<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(name);
    fs::read(&path).with_context(|| path.display().to_string())
}

#[test]
fn seed_bodies_are_valid() -> Result<()> {
    for name in ["body/escapes", "body/full", "body/least"] {
        ensure!(Conversation::parse(&seed(name)?).is_ok(), "{name}");
    }
    ensure!(NewAgent::parse(&seed("body/agent")?).is_ok());
    ensure!(NewExport::parse(&seed("body/export")?).is_ok());
    ensure!(NewWebhook::parse(&seed("body/webhook")?).is_ok());
    Ok(())
}

#[test]
fn seed_events_round_trip() -> Result<()> {
    check_round_trip::<ConversationAccepted>("event/accepted")?;
    check_round_trip::<ConversationEvaluated>("event/evaluated")?;
    check_round_trip::<ConversationEvaluated>("event/failed")?;
    check_round_trip::<ConversationDeleted>("event/deleted")?;
    check_round_trip::<EvaluationDeleted>("event/evaluation_deleted")?;
    check_round_trip::<ConversationsExpired>("event/expired")?;
    check_round_trip::<ExportRequested>("event/requested")?;
    check_round_trip::<AgentCreated>("event/agent")?;
    check_round_trip::<EvaluationAnnounced>("event/announced")?;
    check_round_trip::<EvaluationAnnounced>("event/announced_failure")?;
    check_round_trip::<EvaluationRetracted>("event/retracted")?;
    check_round_trip::<ExportFinished>("event/finished")?;
    ensure!(Delivery::parse(&seed("event/other_version")?, 1).is_err());
    Ok(())
}

fn check_round_trip<E: Event + PartialEq>(name: &str) -> Result<()> {
    let delivery = Delivery::parse(&seed(name)?, 1).with_context(|| name.to_owned())?;
    let event: E = delivery.decode().with_context(|| name.to_owned())?;
    let written = OutgoingEvent::new(delivery.id, delivery.occurred_at, &event)?;
    let again = Delivery::parse(written.payload().as_bytes(), 1)?;
    ensure!(again.decode::<E>()? == event, "{name}: another event after it was written and read");
    Ok(())
}
