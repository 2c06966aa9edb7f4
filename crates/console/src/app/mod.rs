//! The use cases of the pages: calls of the services that store the data.

mod evaluations;
mod exports;
mod registry;
mod services;
mod session_look_ups;
mod sign_in;
mod webhooks;

pub(crate) use self::evaluations::{ImportCounts, TranscriptLookup};
pub(crate) use self::services::{OrganizationServices, Services, claims_of};
pub(crate) use self::session_look_ups::SessionLookUps;
pub(crate) use self::sign_in::{begin_session, find_session};
pub(crate) use self::webhooks::OrganizationWebhooks;
