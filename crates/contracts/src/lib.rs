//! The words of Assay: ids, times, tenants, requests, events and answers.
//!
//! Everything that crosses a boundary (public API, service to service, broker) is defined here, once, so that
//! two roles can never disagree about a shape. Pure: no I/O, no async, no database, no process-global state.

pub mod agent;
pub mod announcement;
pub mod conversation;
pub mod evaluation;
pub mod event;
pub mod export;
pub mod fault;
pub mod ids;
pub mod internal;
pub mod json;
pub mod page;
pub mod problem;
pub mod retention;
pub mod tenant;
pub mod ticket;
pub mod time;
pub mod webhook;
