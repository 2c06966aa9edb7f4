//! Migrations of all services on both databases: applied and reverted one by one, interrupted, run concurrently; and the
//! rule that the previous release works on the new schema (`proto-docs/migrations.md`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod concurrent;
mod files;
mod installation;
mod interrupted;
mod previous_release;
#[path = "../repository/mod.rs"]
mod repository;
mod statements;
mod steps;
