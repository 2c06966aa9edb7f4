//! Private PostgreSQL and RabbitMQ servers for tests and the local stack.
//!
//! Tests and `make stack` run against real servers, as root or as a plain user, on machines where the well-known ports
//! may be in use. So every server here gets a free loopback port and its own data folder, and is verified to be the one
//! that was started.
//!
//! - [`services`] and [`TestDatabase`] are the entry points for tests;
//! - [`PrivatePostgres`] and [`PrivateRabbit`] are the servers;
//! - [`launcher`] has the table of the roles and starts them as processes;
//! - [`proxy`] injects network faults between processes;
//! - [`stub_server`] is the HTTP server below the stubs;
//! - [`stub_judge`] is a chat completions endpoint with scripted responses and faults;
//! - [`stack`] is the supervisor behind the `assay-stack` executable.
//!
//! Linux only: it relies on `/proc`, on signal file descriptors and on the parent death signal.

pub mod launcher;
pub mod process;
pub mod proxy;
pub mod services;
pub mod signals;
pub mod stack;
pub mod stub_judge;
pub mod stub_server;
pub mod wait;

mod account;
mod blocked_migrations;
mod database_url;
mod database_users;
mod files;
mod http;
mod identity;
mod memory_limit;
mod ports;
mod postgres;
mod query;
mod rabbit;
mod random;
mod rng;
mod schema_steps;
mod scratch;
mod search_path;
mod service_database;
mod small_disk;
mod sql;
mod test_database;

pub use blocked_migrations::{BlockedMigrations, has_client_connections};
pub use database_users::{SchemaOwner, provision_services};
pub use identity::{ProcessIdentity, processes_in_folder};
pub use memory_limit::{MemoryLimit, memory_limit_of_manifest};
pub use ports::free_port;
pub use postgres::{PostgresOptions, PrivatePostgres, client_program as postgres_program};
pub use query::{execute, query_texts};
pub use rabbit::{PrivateRabbit, RabbitOptions};
pub use random::random_name;
pub use rng::Rng;
pub use schema_steps::SchemaSteps;
pub use scratch::Location;
pub use service_database::{ServiceDatabase, eventually, eventually_within};
pub use small_disk::SmallDisk;
pub use sql::{execute_on, number_on, texts_on};
pub use test_database::{Template, TestDatabase};
