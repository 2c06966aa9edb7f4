//! The role at work: jobs go in through the database and the bus, files come out, on both databases.

mod file_periods;
mod interrupted;
mod large;
#[path = "../../../export/tests/export/place.rs"]
mod place;
#[path = "../../../export/tests/export/registry.rs"]
mod registry;
#[path = "../../../export/tests/export/samples.rs"]
#[allow(dead_code, reason = "shared with the tests of the export role, which use more of it")]
mod samples;
mod silent_store;
mod stage;
mod stopping;
mod troubled;
mod working;
