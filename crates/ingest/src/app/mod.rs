//! The role's use cases, one file each, and the queue between accepting and writing.

pub mod accept_conversation;
pub mod delete_ticket;
pub mod import_queue;
pub mod read_transcript;
pub mod read_transcripts;
pub mod resolve_agents;
pub mod run_maintenance;
pub mod turns;
pub mod write_imports;
