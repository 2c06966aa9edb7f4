//! The role as its callers see it: over HTTP and through its library functions, on both databases.

mod agents;
mod idempotency;
mod keys;
mod retention;
mod stage;
mod start;
