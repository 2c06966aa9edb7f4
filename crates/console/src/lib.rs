//! The console role.
