//! The agent-registry role.
