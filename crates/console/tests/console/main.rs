//! The role over HTTP: real sessions of agent-registry, and stand-ins for the services that pages read.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod conversation;
mod exports;
mod headers;
mod hostile;
mod imports;
mod kept_forms;
mod long_lists;
mod overview;
mod pages;
mod sessions;
mod stand_ins;
mod test_app;
mod webhooks;
