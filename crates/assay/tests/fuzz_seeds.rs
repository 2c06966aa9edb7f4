//! Fuzzing seeds that should be valid are valid: a seed refused at once is useless.

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
    is_read::<ConversationAccepted>("event/accepted")?;
    is_read::<ConversationEvaluated>("event/evaluated")?;
    is_read::<ConversationEvaluated>("event/failed")?;
    is_read::<ConversationDeleted>("event/deleted")?;
    is_read::<EvaluationDeleted>("event/evaluation_deleted")?;
    is_read::<ConversationsExpired>("event/expired")?;
    is_read::<ExportRequested>("event/requested")?;
    is_read::<AgentCreated>("event/agent")?;
    is_read::<EvaluationAnnounced>("event/announced")?;
    is_read::<EvaluationAnnounced>("event/announced_failure")?;
    is_read::<EvaluationRetracted>("event/retracted")?;
    is_read::<ExportFinished>("event/finished")?;
    ensure!(Delivery::parse(&seed("event/other_version")?, 1).is_err());
    Ok(())
}

fn is_read<E: Event + PartialEq>(name: &str) -> Result<()> {
    let delivery = Delivery::parse(&seed(name)?, 1).with_context(|| name.to_owned())?;
    let event: E = delivery.decode().with_context(|| name.to_owned())?;
    let written = OutgoingEvent::new(delivery.id, delivery.occurred_at, &event)?;
    let again = Delivery::parse(written.payload().as_bytes(), 1)?;
    ensure!(again.decode::<E>()? == event, "{name}: another event after it was written and read");
    Ok(())
}
