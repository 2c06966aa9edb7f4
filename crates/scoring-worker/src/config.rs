//! The section `[scoring]` of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_judge::JudgeConfig;
use assay_platform::db::DatabaseSettings;
use assay_scoring::Policy;
use secrecy::SecretString;
use serde::Deserialize;

/// How conversations are evaluated. Every key is described in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Listen address of the internal API.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Maximum number of connections.
    pub database_pool_size: u32,
    /// A model file made by `make reader`; empty for the shipped model.
    pub model: PathBuf,
    /// A weights file made by `assay fit`; empty for the shipped weights.
    pub weights: PathBuf,
    /// Whether silence after a substantive AI answer counts as resolved.
    pub silence_is_resolved: bool,
    /// Whether a conversation that was escalated to a human counts as not resolved.
    pub escalation_counts_as_not_resolved: bool,
    /// Conversations evaluated together, in one transaction.
    pub batch_size: usize,
    /// Maximum number of conversations in flight.
    pub max_in_flight: usize,
    /// Deadline of a call of ingest, in milliseconds.
    pub ingest_deadline_milliseconds: u64,
    /// Not ready while an unpublished event is older than this, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Interval between maintenance runs, in seconds.
    pub maintenance_interval_seconds: u64,
    /// Interval between polls of the organizations with a webhook for evaluations, in milliseconds.
    pub subscribers_poll_interval_milliseconds: u64,
    /// The LLM judge.
    pub judge: JudgeConfig,
}

impl Config {
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }

    /// The resolution rules of the contract between buyer and vendor.
    pub fn policy(&self) -> Policy {
        Policy {
            silence_is_resolved: self.silence_is_resolved,
            escalation_counts_as_not_resolved: self.escalation_counts_as_not_resolved,
        }
    }
}
