//! Types and rules of exports; no input or output.

pub mod breakdown;
pub mod byte_range;
pub mod csv;
pub mod day;
pub mod download_address;
pub mod evaluation_facts;
pub mod evaluation_row;
pub mod facets;
pub mod file_key;
pub mod file_view;
pub mod job;
pub mod lease;
pub mod matcher;
pub mod public_base_url;
pub mod ranking;
pub mod removal;
pub mod sequence_tracker;
pub mod sort_value;
pub mod summary;
pub mod tally;
pub mod terms;
