//! `assay migrate`: migrates the databases of all services. A Job in Kubernetes; the standalone does it when it starts.

use std::io::{Write, stderr};

use anyhow::Result;

use crate::installation::migrate_all;
use crate::settings::Settings;

pub async fn run() -> Result<()> {
    let settings = Settings::load()?;
    let mut output = stderr();
    for (service, applied) in migrate_all(&settings).await? {
        match applied.as_slice() {
            [] => writeln!(output, "{service}: up to date")?,
            applied => writeln!(output, "{service}: applied {}", applied.join(", "))?,
        }
    }
    Ok(())
}
