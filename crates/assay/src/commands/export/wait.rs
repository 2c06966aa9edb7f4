//! Waiting until an export is complete.

use std::time::Duration;

use anyhow::{Result, bail};
use assay_contracts::export::{Export, ExportStatus};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use tokio::time::{Instant, sleep_until};

use super::EXPORTS;
use crate::api::{Api, Call};

/// Pauses between two looks, the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The export, once it is complete; none when that takes longer than `limit`.
pub async fn wait(api: &Api, id: &str, limit: Duration) -> Result<Option<Export>> {
    let end = Instant::now() + limit;
    let line = progress_line();
    let mut pause = FIRST_PAUSE;
    loop {
        let export = read(api, id).await?;
        match export.status {
            ExportStatus::Complete => return Ok(Some(export)),
            ExportStatus::Failed => {
                bail!("export {id} failed: {}", export.error_message.unwrap_or_default())
            }
            ExportStatus::Pending | ExportStatus::Running => {}
        }
        line.set_message(format!("export {id} is {}", export.status.as_str()));
        let now = Instant::now();
        if now >= end {
            return Ok(None);
        }
        sleep_until((now + pause).min(end)).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// The export as it is now, its address fresh.
pub async fn read(api: &Api, id: &str) -> Result<Export> {
    // An id is what the user typed.
    let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    api.json(&Call::get(&format!("{EXPORTS}/{id}"))).await
}

/// What a person at a terminal sees; nothing elsewhere.
fn progress_line() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
    let line = ProgressBar::new_spinner().with_finish(ProgressFinish::AndClear);
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    line.enable_steady_tick(Duration::from_millis(120));
    line
}
