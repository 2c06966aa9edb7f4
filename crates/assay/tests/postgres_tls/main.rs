//! TLS to PostgreSQL, in a build with the feature `postgres-tls`: on servers that demand it, and on wrong ones. The
//! parameters of an address are those of libpq. Run by `make test-tls`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod authority;
mod connections;
mod executable;
mod product;
mod server;
