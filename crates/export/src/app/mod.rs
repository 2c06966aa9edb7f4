//! The use cases, one for each file.

pub(crate) mod create_export;
pub(crate) mod download_permits;
pub(crate) mod find_neighbours;
mod list_cursor;
pub(crate) mod list_evaluations;
pub(crate) mod list_exports;
pub(crate) mod open_file;
pub(crate) mod read_export;
pub(crate) mod read_permits;
pub(crate) mod record_evaluations;
pub(crate) mod refresh_days;
pub(crate) mod run_maintenance;
pub(crate) mod set_target_sequences;
pub(crate) mod summarize_evaluations;
