//! The export worker role.
