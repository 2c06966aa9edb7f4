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
    /// Address to listen on, for our other services.
    pub listen: SocketAddr,
    /// `postgres://…` or `sqlite:PATH`.
    pub database_url: SecretString,
    /// Connections at most.
    pub database_pool_size: u32,
    /// A weights file made by `assay fit`; empty for the scores as the model that ships reads them.
    pub weights: PathBuf,
    /// Whether silence after a substantive AI answer counts as resolved.
    pub silence_is_resolved: bool,
    /// Whether a conversation that was passed on to a human counts as not resolved.
    pub escalation_counts_as_not_resolved: bool,
    /// Conversations evaluated together, in one transaction.
    pub batch_size: usize,
    /// Conversations taken from the bus at once.
    pub max_in_flight: usize,
    /// How long ingest may take to answer, in milliseconds.
    pub ingest_deadline_milliseconds: u64,
    /// Not ready when an event waits to be published for longer, in seconds.
    pub outbox_age_limit_seconds: u64,
    /// Between two rounds of housekeeping, in seconds.
    pub maintenance_interval_seconds: u64,
    /// How often webhooks is asked which organizations want to be told of evaluations, in milliseconds.
    pub interest_interval_milliseconds: u64,
    /// The second scorer.
    pub judge: JudgeConfig,
}

impl Config {
    /// Where the evaluations are kept.
    pub fn database(&self) -> DatabaseSettings {
        DatabaseSettings {
            database_url: self.database_url.clone(),
            database_pool_size: self.database_pool_size,
        }
    }

    /// The rules that buyer and vendor agreed on.
    pub fn policy(&self) -> Policy {
        Policy {
            silence_is_resolved: self.silence_is_resolved,
            escalation_counts_as_not_resolved: self.escalation_counts_as_not_resolved,
        }
    }
}
