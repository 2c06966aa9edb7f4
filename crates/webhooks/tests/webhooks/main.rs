//! The store of the role, on both databases.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod fixture;
mod sending;
mod store;
