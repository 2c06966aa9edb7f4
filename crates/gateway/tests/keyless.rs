//! `/docs` and `/openapi.json`, which need no key: their settings, and clients that do not read their responses.

#![cfg(target_os = "linux")]

mod support;

use std::io::Read;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use assay_contracts::problem::Problem;
use assay_platform::http_client::client_builder;
use reqwest::StatusCode;
use tokio::time::sleep;

use self::support::{Gateway, LARGE_FILE};

#[tokio::test(flavor = "multi_thread")]
async fn response_without_progress_ends_and_frees_its_slot() -> Result<()> {
    let gateway = Gateway::start(|config| {
        config.max_keyless_in_flight = 1;
        config.response_stall_seconds = 1;
    })?;
    let mut stalled = gateway.request_and_read_status(LARGE_FILE)?;
    let (_unread, refused) =
        gateway.fill_slots(LARGE_FILE, "/openapi.json", StatusCode::SERVICE_UNAVAILABLE).await?;
    ensure!(refused.headers().contains_key("retry-after"), "{refused:?}");
    ensure!(refused.json::<Problem>().await?.code.as_str() == "unavailable");
    // The slot is free when `stalled` has ended, and not before.
    gateway.wait_for_status("/openapi.json", StatusCode::OK).await?;
    ensure!(stalled.read_to_end(&mut Vec::new()).is_err(), "the response was complete");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_reader_that_makes_progress_is_served() -> Result<()> {
    let gateway = Gateway::start(|config| config.response_stall_seconds = 3)?;
    let began = Instant::now();
    let size = gateway.get(LARGE_FILE).await?.bytes().await?.len();
    let mut connection = gateway.request_unread(LARGE_FILE)?;
    let (mut received, mut buffer) = (0, [0; 16 * 1024]);
    while received < size {
        sleep(Duration::from_millis(50)).await;
        let read = connection.read(&mut buffer)?;
        ensure!(read > 0, "ended after {received} bytes");
        received += read;
    }
    ensure!(began.elapsed() > Duration::from_secs(3), "it was not slow: {:?}", began.elapsed());
    Ok(())
}

#[tokio::test]
async fn reference_can_be_turned_off() -> Result<()> {
    let on = Gateway::start(|_| ())?;
    ensure!(on.get("/docs/").await?.status() == 200);
    let off = Gateway::start(|config| config.docs = false)?;
    for path in ["/docs", "/docs/", LARGE_FILE] {
        let response = off.get(path).await?;
        ensure!(response.status() == 404, "{path}: {response:?}");
        ensure!(response.json::<Problem>().await?.code.as_str() == "route-not-found");
    }
    ensure!(off.get("/openapi.json").await?.status() == 200);
    Ok(())
}

#[tokio::test]
async fn known_document_is_not_sent_again() -> Result<()> {
    let gateway = Gateway::start(|_| ())?;
    let first = gateway.get("/openapi.json").await?;
    let etag = first.headers()["etag"].to_str()?.to_owned();
    ensure!(first.headers()["content-type"] == "application/json");
    let document: serde_json::Value = first.json().await?;
    ensure!(document == serde_json::to_value(assay_gateway::openapi_document())?);
    let address = gateway.url("/openapi.json");
    for (known, status) in [(etag.as_str(), 304), ("*", 304), ("\"another\"", 200), ("not a tag", 200)] {
        let response = client_builder().build()?.get(&address).header("if-none-match", known).send().await?;
        ensure!(response.status() == status, "{known}: {response:?}");
        ensure!(response.headers()["etag"] == etag.as_str());
    }
    Ok(())
}
