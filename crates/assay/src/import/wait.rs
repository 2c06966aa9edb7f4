//! `--wait`: waits until the imported conversations are scored.

use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressFinish};
use reqwest::StatusCode;
use serde::Deserialize;
use tokio::time::sleep;

use crate::api::{Api, Call, Problem};
use crate::terminal::progress_style;

/// Poll intervals: the first and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Waits until none of these tickets has a pending evaluation. Deleted tickets are skipped.
pub async fn until_scored(api: &Api, tickets: &[String]) -> Result<()> {
    let bar = ProgressBar::new(tickets.len() as u64)
        .with_finish(ProgressFinish::AndClear)
        .with_style(progress_style("{bar:30} {pos} of {len} scored, ETA {eta}"));
    for ticket in tickets {
        let mut pause = FIRST_PAUSE;
        while is_pending(api, ticket).await? {
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
        bar.inc(1);
    }
    Ok(())
}

#[derive(Deserialize)]
struct Evaluation {
    status: String,
}

async fn is_pending(api: &Api, ticket: &str) -> Result<bool> {
    let path = format!("/v1/tickets/{ticket}/evaluation");
    let response = api.send(&Call::get(&path)).await?;
    match response.status() {
        StatusCode::NOT_FOUND => Ok(false),
        status if status.is_success() => {
            let evaluation: Evaluation = response.json().await?;
            Ok(evaluation.status == "pending")
        }
        _ => Err(Problem::read(response).await.into_error()),
    }
}
