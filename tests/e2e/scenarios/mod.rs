//! The scenarios. Each is a function of a stack that nothing else uses.

pub mod agents;
pub mod assess_rules;
pub mod bodies;
pub mod credentials;
pub mod deletion;
pub mod downloads;
pub mod durability;
pub mod exports;
pub mod flood;
pub mod http_edges;
pub mod idempotency;
pub mod identity;
pub mod import_command;
pub mod isolation;
pub mod judge;
pub mod limits;
pub mod outages;
pub mod personal_data;
pub mod retention_command;
pub mod service_tokens;
pub mod shutdown;
pub mod signed_addresses;
pub mod strange_requests;
pub mod tickets;
pub mod webhooks;
pub mod whole_path;
