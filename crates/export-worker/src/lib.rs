//! The export worker role: takes export jobs and writes their files, in constant memory whatever the number of rows.
//!
//! It has no tables of its own: it works on those of the role `export`, through that role's store.

mod app;
mod config;
mod consume;
mod metrics;
mod start;

pub use assay_export::{MIGRATIONS, SCHEMA};

pub use self::config::Config;
pub use self::consume::QUEUE;
pub use self::start::{Dependencies, StartError, start};
