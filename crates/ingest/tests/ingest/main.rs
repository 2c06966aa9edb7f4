//! Integration tests of the role over HTTP, on both databases, with a fake agent-registry.

mod agents;
mod concurrency;
mod counts;
mod events;
mod failures;
mod idempotency;
mod kept_refusals;
mod names;
mod outages;
mod refusals;
mod registry;
mod removals;
mod start;
mod test_app;
mod transcripts;
