//! Any bytes as a request body: each of the readers gives a request or a list of validation errors, and what is accepted can be
//! evaluated.

#![no_main]

#[path = "checks.rs"]
mod checks;

use assay_contracts::agent::NewAgent;
use assay_contracts::conversation::Conversation;
use assay_contracts::export::NewExport;
use assay_contracts::validation::{BodyError, MAX_NAME_CHARS, MAX_REPORTED_ERRORS};
use assay_contracts::webhook::{MAX_URL_BYTES, NewWebhook, WebhookChange};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Conversation::parse(data) {
        Ok(conversation) => checks::check_evaluation(&conversation),
        Err(error) => check_refusal(&error),
    }
    match NewAgent::parse(data) {
        Ok(agent) => {
            let names = [agent.external_id, agent.name];
            let fits = |name: &String| (1..=MAX_NAME_CHARS).contains(&name.chars().count());
            assert!(names.iter().all(fits) && !names.concat().contains('\0'), "{names:?}");
        }
        Err(error) => check_refusal(&error),
    }
    match NewWebhook::parse(data) {
        Ok(webhook) => assert!(!webhook.events.is_empty() && (1..=MAX_URL_BYTES).contains(&webhook.url.len())),
        Err(error) => check_refusal(&error),
    }
    if let Err(error) = WebhookChange::parse(data) {
        check_refusal(&error);
    }
    match NewExport::parse(data) {
        Ok(export) => {
            let (from, to) = (export.filters.from, export.filters.to);
            assert!(from.zip(to).is_none_or(|(from, to)| from <= to), "{from:?} to {to:?}");
        }
        Err(error) => check_refusal(&error),
    }
});

/// A refusal has a reason, and a bounded number of errors.
fn check_refusal(error: &BodyError) {
    match error {
        BodyError::Malformed(reason) => assert!(!reason.is_empty()),
        BodyError::Invalid(errors) => {
            assert!((1..=MAX_REPORTED_ERRORS).contains(&errors.len()), "{errors:?}");
            assert!(errors.iter().all(|error| !error.detail.is_empty()), "{errors:?}");
        }
    }
}
