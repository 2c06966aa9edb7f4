//! The ingest role.
