//! The use cases of the pages: calls of the services that store the data.

mod evaluations;
mod exports;
mod keys;
mod services;
mod session_look_ups;
mod sign_in;
mod webhooks;

pub(crate) use self::evaluations::{
    ImportCounts, TranscriptLookup, count_imports, find_evaluation, find_neighbours, find_transcript,
    list_evaluations, list_refusals, summarize,
};
pub(crate) use self::exports::{create_export, download_address, list_exports};
pub(crate) use self::keys::{
    create_agent, create_key, list_agents, list_agents_before, list_and_count_agents, list_keys,
    list_sessions, revoke_key,
};
pub(crate) use self::services::{Services, claims_of};
pub(crate) use self::session_look_ups::SessionLookUps;
pub(crate) use self::sign_in::{begin_session, end_session, find_session};
pub(crate) use self::webhooks::{
    change_webhook, create_webhook, delete_webhook, list_deliveries, list_webhooks, read_delivery,
    read_webhook, replay_delivery, rotate_secret, send_test,
};
