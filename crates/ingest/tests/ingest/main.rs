//! The role as its callers see it, over HTTP and on both databases, with an agent-registry of the tests.

mod agents;
mod concurrency;
mod conversations;
mod events;
mod failures;
mod idempotency;
mod names;
mod outages;
mod refusals;
mod registry;
mod removals;
mod stage;
mod start;
mod transcripts;
