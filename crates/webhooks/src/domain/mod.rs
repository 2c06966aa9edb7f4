//! Types and rules of webhooks.

pub mod address;
pub mod attempt;
pub mod endpoint;
pub mod message;
pub mod schedule;
pub mod secret;
