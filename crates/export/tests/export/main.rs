//! Integration tests of the role over HTTP, the bus and its stores, on both databases.

mod consumer;
mod copied_facts;
mod creating;
mod csv_lines;
mod days;
mod downloads;
mod evaluation_lists;
mod export_lists;
mod list_order;
mod maintenance;
mod open_exports;
mod random_evaluations;
mod read_model;
mod reading;
mod registry;
mod removals;
mod samples;
mod slow_downloads;
mod store_leases;
mod store_rows;
mod store_sequences;
mod store_snapshots;
mod summaries;
mod test_app;
mod test_database;
