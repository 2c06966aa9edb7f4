//! Types and rules of exports; no input or output.

pub mod byte_range;
pub mod csv;
pub mod download_address;
pub mod evaluation_row;
pub mod file_key;
pub mod file_view;
pub mod job;
pub mod lease;
pub mod removal;
pub mod sequence_tracker;
pub mod view;
