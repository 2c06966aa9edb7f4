//! The role as its callers see it: over HTTP, over the bus, and through its stores, on both databases.

mod consumer;
mod creating;
mod csv_lines;
mod downloads;
mod housekeeping;
mod listing;
mod place;
mod reading;
mod registry;
mod removals;
mod samples;
mod stage;
mod store_copies;
mod store_leases;
mod store_rows;
