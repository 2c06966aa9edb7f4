//! Settings of all processes: short timeouts, leases and retry delays, so that a run takes minutes. None of them makes
//! the service safer than its defaults.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// The key of all clients.
pub const KEY: &str = "chaos-bootstrap-key";

const FILE: &str = r#"
bootstrap_api_key = "chaos-bootstrap-key"
[telemetry]
filter = "info,actix_server=warn,actix_http=off,lapin=error"
[security]
service_token_secret = "the-secret-of-the-services-under-chaos"
signing_keys = "k1:the-secret-of-the-signatures-under-chaos"
[bus]
retry_delays_ms = [200, 1000, 3000]
max_attempts = 200
[gateway]
key_cache_seconds = 5
[export_worker]
lease_milliseconds = 4000
poll_interval_milliseconds = 500
pending_grace_milliseconds = 1000
retry_delay_milliseconds = 500
max_attempts = 50
evaluations_wait_milliseconds = 120000
"#;

/// Settings in the environment of the test, which must not reach the product.
pub fn inherited() -> impl Iterator<Item = std::ffi::OsString> {
    std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("ASSAY_"))
}

pub struct Settings {
    variables: Vec<(String, String)>,
}

impl Settings {
    pub fn write(home: &Path, objects: &Path) -> Result<Self> {
        let file = home.join("chaos.toml");
        fs::write(&file, FILE)?;
        let variables = vec![
            ("ASSAY_CONFIG".to_owned(), file.display().to_string()),
            ("ASSAY_OBJECTS__URL".to_owned(), format!("file://{}", objects.display())),
        ];
        Ok(Self { variables })
    }

    pub fn variables(&self) -> Vec<(String, String)> {
        self.variables.clone()
    }
}
