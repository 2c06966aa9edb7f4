//! Integration tests of the role over HTTP, on both databases, with a fake agent-registry.

mod agents;
mod concurrency;
mod counts;
mod events;
mod failures;
mod idempotency;
mod names;
mod outages;
mod refusals;
mod refused_requests;
mod registry;
mod removals;
mod start;
mod test_app;
mod transcripts;
