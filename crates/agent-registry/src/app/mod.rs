//! The registry's use cases, one file each.

pub mod bootstrap;
pub mod console_sessions;
pub mod create_agent;
pub mod create_key;
pub mod find_agents;
pub mod list_agents;
pub mod list_keys;
pub mod list_retention;
pub mod record_key_use;
pub mod resolve_key;
pub mod revoke_key;
pub mod run_maintenance;
pub mod set_retention;
