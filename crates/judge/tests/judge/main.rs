//! The judge against a real endpoint that behaves in every way an endpoint can.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod answers;
mod endpoints;
mod limits;
mod perfect_judge;
mod rules;
mod stage;
mod trial;
