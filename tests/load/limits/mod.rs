//! What the parts that we build on can do by themselves, doing the same work in the same run.

pub mod copy;
pub mod pgbench;
pub mod select;
pub mod sqlite;
