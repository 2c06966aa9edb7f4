//! Integration tests of the role, on both databases.

mod failures;
mod jobs;
mod large;
mod leases;
#[path = "../../../export/tests/export/registry.rs"]
mod registry;
mod retention;
#[path = "../../../export/tests/export/samples.rs"]
#[allow(dead_code, reason = "shared with the tests of the export role, which use more of it")]
mod samples;
mod shutdown;
mod sweep;
mod test_app;
#[path = "../../../export/tests/export/test_database.rs"]
#[allow(dead_code, reason = "shared with the tests of the export role, which use more of it")]
mod test_database;
mod unresponsive_store;
