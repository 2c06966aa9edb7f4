//! Baselines: the same work by PostgreSQL or SQLite alone, in the same run.

pub mod copy;
pub mod pgbench;
pub mod select;
pub mod sqlite;
