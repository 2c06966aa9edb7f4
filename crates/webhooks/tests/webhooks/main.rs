//! The role and its store, on both databases.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod fixture;
mod requests;
mod running_role;
mod sending;
mod slow_endpoints;
mod store;
