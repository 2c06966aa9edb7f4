//! The export role.
