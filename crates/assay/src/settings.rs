//! The complete configuration: the sections of all roles.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use assay_messaging::BusSettings;
use assay_platform::auth::{ApiKey, KeyRing, ServiceTokens};
use assay_platform::objects::Objects;
use assay_platform::runtime::ShutdownBudgets;
use assay_platform::settings as source;
use assay_platform::telemetry::TelemetrySettings;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

/// The built-in defaults, which list every setting.
const DEFAULTS: &str = include_str!("../../../config/default.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    pub bootstrap_api_key: SecretString,
    pub bootstrap_organization: String,
    pub telemetry: TelemetrySettings,
    pub shutdown: ShutdownSettings,
    pub security: SecuritySettings,
    pub services: ServicesSettings,
    pub bus: BusSettings,
    pub objects: ObjectsSettings,
    pub gateway: assay_gateway::Config,
    pub registry: assay_agent_registry::Config,
    pub ingest: assay_ingest::Config,
    pub scoring: assay_scoring_worker::Config,
    pub export: assay_export::Config,
    pub export_worker: assay_export_worker::Config,
    pub webhooks: assay_webhooks::Config,
    pub console: assay_console::Config,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShutdownSettings {
    pub drain_milliseconds: u64,
    pub phase_seconds: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecuritySettings {
    pub service_token_secret: SecretString,
    pub service_token_accepted_secret: SecretString,
    pub signing_keys: SecretString,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServicesSettings {
    pub registry_url: Url,
    pub ingest_url: Url,
    pub scoring_url: Url,
    pub export_url: Url,
    /// Empty: no webhooks.
    pub webhooks_url: String,
    /// Empty: no console.
    pub console_url: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectsSettings {
    pub url: String,
    pub options: BTreeMap<String, String>,
}

impl Settings {
    /// Merges the defaults, the file of `ASSAY_CONFIG` and the environment. Two settings default to that of another role.
    pub fn load() -> Result<Self> {
        let file = source::configuration_file();
        let mut settings: Self =
            source::load(DEFAULTS, file.as_deref(), source::environment().context("settings")?)
                .context("settings")?;
        if settings.export_worker.database_url.expose_secret().is_empty() {
            settings.export_worker.database_url = settings.export.database_url.clone();
        }
        if settings.ingest.max_body_bytes == 0 {
            settings.ingest.max_body_bytes = settings.gateway.max_body_bytes;
        }
        Ok(settings)
    }

    pub fn tokens(&self) -> Result<ServiceTokens> {
        let SecuritySettings { service_token_secret, service_token_accepted_secret, .. } = &self.security;
        Ok(ServiceTokens::new(service_token_secret)?.accepting(service_token_accepted_secret)?)
    }

    pub fn signing_keys(&self) -> Result<KeyRing> {
        Ok(KeyRing::parse(&self.security.signing_keys)?)
    }

    pub fn open_objects(&self) -> Result<Objects> {
        Ok(Objects::open(&self.objects.url, self.objects.options.clone())?)
    }

    /// Address of the role webhooks; `None` when webhooks are turned off.
    pub fn webhooks_url(&self) -> Result<Option<Url>> {
        optional_url(&self.services.webhooks_url)
            .context("services.webhooks_url must be an address, or empty for no webhooks")
    }

    /// Address of the role console; `None` when there is none.
    pub fn console_url(&self) -> Result<Option<Url>> {
        optional_url(&self.services.console_url)
            .context("services.console_url must be an address, or empty for no console")
    }

    /// The bootstrap API key and its organization.
    pub fn bootstrap(&self) -> Result<Option<(ApiKey, String)>> {
        let key = self.bootstrap_api_key.expose_secret();
        if key.is_empty() {
            return Ok(None);
        }
        let key = ApiKey::parse_bootstrap(key).context("bootstrap_api_key")?;
        Ok(Some((key, self.bootstrap_organization.clone())))
    }

    pub fn shutdown_budgets(&self) -> ShutdownBudgets {
        ShutdownBudgets {
            per_phase: Duration::from_secs(self.shutdown.phase_seconds),
            drain: Duration::from_millis(self.shutdown.drain_milliseconds),
        }
    }
}

fn optional_url(text: &str) -> Result<Option<Url>> {
    if text.is_empty() { Ok(None) } else { Ok(Some(Url::parse(text)?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_defaults_are_complete_without_unknown_keys() {
        source::load::<Settings>(DEFAULTS, None, BTreeMap::new()).unwrap();
    }

    #[test]
    fn mistyped_setting_is_an_error() {
        let variables = BTreeMap::from([("ASSAY_INGEST__DATABSE_URL".to_owned(), "x".to_owned())]);
        let error = source::load::<Settings>(DEFAULTS, None, variables).unwrap_err().to_string();
        assert!(error.contains("databse_url"), "{error}");
    }
}
