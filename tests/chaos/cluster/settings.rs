//! Settings of all processes: short timeouts, leases and retry delays, so that a run takes minutes. None of them makes
//! the service safer than its defaults.

use std::fs;
use std::path::Path;

use anyhow::Result;
use assay_testkit::launcher::Settings;

/// The key of all clients: the `bootstrap_api_key` of [`FILE`].
pub const KEY: &str = "bootstrap-key-of-the-clients-of-chaos";

const FILE: &str = r#"
bootstrap_api_key = "bootstrap-key-of-the-clients-of-chaos"
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

/// Writes the file into `home` and returns the settings that lead to it.
pub fn write(home: &Path, objects: &Path) -> Result<Settings> {
    let file = home.join("chaos.toml");
    fs::write(&file, FILE)?;
    Ok(Settings::from([
        ("ASSAY_CONFIG".to_owned(), file.display().to_string()),
        ("ASSAY_OBJECTS__URL".to_owned(), format!("file://{}", objects.display())),
    ]))
}
