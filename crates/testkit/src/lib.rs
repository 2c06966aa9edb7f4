//! Private PostgreSQL and RabbitMQ for tests and the local stack.
//!
//! Tests and `make stack` must run against the real servers, on a machine that may already run its own on the
//! well-known ports, as root and as a plain user. Everything here therefore starts its own servers, on free
//! loopback ports, with their data in a folder of their own, and makes sure that the server that answers is the
//! one it started.
//!
//! - [`services`] and [`TestDatabase`] are what tests use;
//! - [`PrivatePostgres`] and [`PrivateRabbit`] are the servers;
//! - [`proxy`] makes the network between processes misbehave;
//! - [`stub_judge`] is a chat completions endpoint that misbehaves as a test says;
//! - [`stack`] is the supervisor behind the `assay-stack` executable.
//!
//! Linux only: it relies on `/proc`, on signal file descriptors and on the parent death signal.

pub mod process;
pub mod proxy;
pub mod services;
pub mod signals;
pub mod stack;
pub mod stub_judge;
pub mod wait;

mod account;
mod database_url;
mod files;
mod held_migrations;
mod http;
mod identity;
mod install;
mod ports;
mod postgres;
mod query;
mod rabbit;
mod random;
mod roles;
mod schema_steps;
mod scratch;
mod search_path;
mod service_database;
mod small_disk;
mod test_database;

pub use held_migrations::{HeldMigrations, is_in_use};
pub use identity::{ProcessIdentity, processes_in_folder};
pub use ports::free_port;
pub use postgres::{Location, PostgresOptions, PrivatePostgres, client_program as postgres_program};
pub use query::query_texts;
pub use rabbit::{PrivateRabbit, RabbitOptions};
pub use random::random_name;
pub use roles::{ServiceRole, provision_services};
pub use schema_steps::SchemaSteps;
pub use service_database::{ServiceDatabase, eventually};
pub use small_disk::SmallDisk;
pub use test_database::{Template, TestDatabase};
