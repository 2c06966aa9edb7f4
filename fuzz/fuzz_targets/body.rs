//! Any bytes as a request body: each of the readers gives a request or a list of faults, and what is accepted can be
//! evaluated.

#![no_main]

#[path = "checks.rs"]
mod checks;

use assay_contracts::agent::NewAgent;
use assay_contracts::conversation::Conversation;
use assay_contracts::export::NewExport;
use assay_contracts::fault::{BodyError, MAX_NAME_CHARS, MAX_REPORTED_FAULTS};
use assay_contracts::webhook::{MAX_URL_BYTES, NewWebhook, WebhookChange};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Conversation::parse(data) {
        Ok(conversation) => checks::evaluate(&conversation),
        Err(error) => has_faults(&error),
    }
    match NewAgent::parse(data) {
        Ok(agent) => {
            let names = [agent.external_id, agent.name];
            let short = |name: &String| (1..=MAX_NAME_CHARS).contains(&name.chars().count());
            assert!(names.iter().all(short) && !names.concat().contains('\0'), "{names:?}");
        }
        Err(error) => has_faults(&error),
    }
    match NewWebhook::parse(data) {
        Ok(webhook) => assert!(!webhook.events.is_empty() && (1..=MAX_URL_BYTES).contains(&webhook.url.len())),
        Err(error) => has_faults(&error),
    }
    if let Err(error) = WebhookChange::parse(data) {
        has_faults(&error);
    }
    match NewExport::parse(data) {
        Ok(export) => {
            let (from, to) = (export.filters.from, export.filters.to);
            assert!(from.zip(to).is_none_or(|(from, to)| from <= to), "{from:?} to {to:?}");
        }
        Err(error) => has_faults(&error),
    }
});

/// A refusal says why, and not endlessly.
fn has_faults(error: &BodyError) {
    match error {
        BodyError::Malformed(reason) => assert!(!reason.is_empty()),
        BodyError::Invalid(faults) => {
            assert!((1..=MAX_REPORTED_FAULTS).contains(&faults.len()), "{faults:?}");
            assert!(faults.iter().all(|fault| !fault.detail.is_empty()), "{faults:?}");
        }
    }
}
