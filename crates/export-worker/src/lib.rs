//! The export-worker role: claims export jobs and writes their files, in constant memory for any number of rows.
//!
//! It has no tables of its own: it uses the store of the role `export`.

mod app;
mod config;
mod consume;
mod metrics;
mod start;

pub use assay_export::store::Notifications;
pub use assay_export::{MIGRATIONS, SCHEMA};

pub use self::config::Config;
pub use self::consume::QUEUE;
pub use self::start::{Dependencies, StartError, start};
