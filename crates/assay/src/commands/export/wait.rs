//! Waits until an export is complete.

use std::time::Duration;

use anyhow::{Result, bail};
use assay_contracts::export::{Export, ExportStatus};
use indicatif::{ProgressBar, ProgressFinish};
use tokio::time::{Instant, sleep_until};

use super::EXPORTS_PATH;
use crate::api::{Api, Call};
use crate::terminal::progress_style;

/// Poll intervals: the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Polls until the export is complete; `None` after `limit`.
pub async fn until_complete(api: &Api, id: &str, limit: Duration) -> Result<Option<Export>> {
    let end = Instant::now() + limit;
    let progress = progress_line();
    let mut pause = FIRST_PAUSE;
    loop {
        let export = read_export(api, id).await?;
        match export.status {
            ExportStatus::Complete => return Ok(Some(export)),
            ExportStatus::Failed => {
                bail!("export {id} failed: {}", export.error_message.unwrap_or_default())
            }
            ExportStatus::Pending | ExportStatus::Running => {}
        }
        progress.set_message(format!("export {id} is {}", export.status.as_str()));
        let now = Instant::now();
        if now >= end {
            return Ok(None);
        }
        sleep_until((now + pause).min(end)).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
}

/// The current state of the export, with a fresh download URL.
pub async fn read_export(api: &Api, id: &str) -> Result<Export> {
    // The id is user input: it must not change the path.
    let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    api.send_for_json(&Call::get(&format!("{EXPORTS_PATH}/{id}"))).await
}

/// Shown at a terminal only.
fn progress_line() -> ProgressBar {
    let line = ProgressBar::new_spinner()
        .with_finish(ProgressFinish::AndClear)
        .with_style(progress_style("{spinner} {msg}, {elapsed}"));
    line.enable_steady_tick(Duration::from_millis(120));
    line
}
