//! The judge against a stub endpoint with all kinds of behaviour.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod endpoints;
mod fixture;
mod limits;
#[path = "../../../../tests/measurement_data.rs"]
mod measurement_data;
mod perfect_judge;
mod probe;
mod rules;
