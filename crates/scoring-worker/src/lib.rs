//! The scoring-worker role.
