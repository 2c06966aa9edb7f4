//! What the role does, one use case a file.

pub(crate) mod count_evaluations;
pub(crate) mod create_export;
pub(crate) mod keep_house;
pub(crate) mod list_exports;
pub(crate) mod open_file;
pub(crate) mod read_export;
pub(crate) mod record_evaluations;
