//! What pages read and change, at the services.

mod keys;
mod services;
mod sign_in;

pub(crate) use self::keys::{create_key, list_agents, list_keys, list_sessions, revoke_key};
pub(crate) use self::services::{Services, claims_of};
pub(crate) use self::sign_in::{Credential, begin_session, end_session, find_session};
