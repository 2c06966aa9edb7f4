//! Data types of Assay: ids, times, tenants, requests, events and responses.
//!
//! Everything that crosses a process boundary (public API, service to service, broker) is defined here once, so that two
//! roles cannot disagree about a schema. Pure: no I/O, no async, no database, no process-global state.

#![warn(missing_docs)]

pub mod agent;
pub mod console;
pub mod conversation;
pub mod evaluation;
pub mod evaluations;
pub mod event;
pub mod export;
pub mod ids;
pub mod internal;
pub mod json;
pub mod named_enum;
pub mod notification;
pub mod page;
pub mod problem;
pub mod refusal;
pub mod retention;
pub mod tenant;
pub mod ticket;
pub mod time;
pub mod validation;
pub mod webhook;
