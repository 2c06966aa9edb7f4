//! `/docs` in a real browser: shows every operation and loads nothing from other hosts.

use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_contracts::problem::ProblemCode;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::browser;
use crate::harness::Stack;

/// How long the browser may take to show the page.
const DEADLINE: Duration = Duration::from_secs(90);

/// The page's files come with a strict policy; a browser shows all operations and reports no violation of it.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api_with(None)?;
    let page = api.get("/docs/").await?;
    page.expect_status(200)?;
    ensure!(page.header("content-security-policy").starts_with("default-src 'none'"), "{page:?}");
    ensure!(!page.text().contains("//cdn"), "the page loads something from elsewhere");
    api.get("/docs/no-such-file.js").await?.problem(404, ProblemCode::RouteNotFound.as_str())?;
    let redirect = api.get("/docs").await?;
    ensure!(redirect.status == 308 && redirect.header("location") == "docs/", "{redirect:?}");

    let Some(browser) = browser::program() else {
        ensure!(std::env::var_os("CI").is_none(), "no browser: install Debian's package chromium");
        writeln!(std::io::stderr(), "skipped: no browser, install Debian's package chromium")?;
        return Ok(());
    };
    let shown = show(&browser, stack, &format!("{}/docs/", stack.base_url())).await?;
    let document = api.get("/openapi.json").await?.expect(200)?;
    for summary in summaries(&document) {
        ensure!(shown.contains(&summary), "the page does not show \"{summary}\": {shown:.2000}");
    }
    Ok(())
}

/// The page after its scripts have run.
async fn show(browser: &PathBuf, stack: &Stack, address: &str) -> Result<String> {
    let profile = stack.folder().join("browser");
    let shown = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--disable-dev-shm-usage", "--enable-logging=stderr", "--virtual-time-budget=30000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(["--dump-dom", address])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let shown = timeout(DEADLINE, shown).await.context("the browser takes too long")??;
    let stderr = String::from_utf8_lossy(&shown.stderr);
    ensure!(!stderr.contains("Content Security Policy"), "{stderr}");
    ensure!(shown.status.success(), "{stderr}");
    Ok(String::from_utf8_lossy(&shown.stdout).into_owned())
}

fn summaries(document: &Value) -> Vec<String> {
    let items = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    let operations = items.filter_map(Value::as_object).flat_map(|item| item.values());
    operations.filter_map(|operation| operation["summary"].as_str()).map(str::to_owned).collect()
}
