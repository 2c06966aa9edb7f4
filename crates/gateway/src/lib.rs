//! The gateway role.
