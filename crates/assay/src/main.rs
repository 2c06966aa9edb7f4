//! The assay executable.
fn main() {}
