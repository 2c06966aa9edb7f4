//! A new user gets from the printed sign-in link to the quote of a disputed conversation of the bundled examples.

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::console::visit::Visit;

/// Limits for a new user.
const MAX_CLICKS: usize = 4;
const MAX_TIME: Duration = Duration::from_secs(60);

/// The printed link signs in; empty pages name the command that imports the examples; then at most four clicks lead to
/// the quote.
pub async fn run(visit: &mut Visit) -> Result<()> {
    visit.browser.reset(&crate::browser::Viewer::default()).await?;
    let log = visit.default_organization.logs()?;
    let printed = log.lines().map(str::trim).find(|line| line.contains("/console/sign-in?token="));
    let printed = printed.context("no address is printed")?.to_owned();

    let began = Instant::now();
    let browser = &mut visit.browser;
    browser.open(&printed).await?;
    browser.expect_address("/console").await?;
    let command = browser.text("#empty pre").await?;
    import(visit, &command).await?;

    let browser = &mut visit.browser;
    browser.reload().await?;
    let clicks = [
        // The number of disputed charges, the first of these conversations, the quote of its resolution.
        ("#charges th.disputed + td a", "/console/conversations"),
        ("#rows tbody .subject a", "/console/conversations/"),
        ("#s-resolution .ref, .signals .ref", "#q"),
    ];
    ensure!(clicks.len() <= MAX_CLICKS, "{} clicks", clicks.len());
    for (selector, leads_to) in clicks {
        if leads_to.starts_with('#') {
            browser.click(selector).await?;
        } else {
            browser.follow(selector).await?;
        }
        browser.expect_in_address(&[leads_to]).await.with_context(|| format!("a click on {selector}"))?;
    }
    let target: String = browser
        .evaluate("(() => { const at = document.querySelector(':target').previousElementSibling.closest('mark') ?? document.querySelector(':target').parentElement.querySelector('mark'); const box = at.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight ? at.textContent : ''; })()")
        .await?;
    ensure!(!target.is_empty(), "the quote is not on the screen");
    let took = began.elapsed();
    ensure!(took <= MAX_TIME, "{} s", took.as_secs());
    writeln!(
        std::io::stderr(),
        "{} clicks and {:.1} s from the printed address to \"{target}\"",
        clicks.len(),
        took.as_secs_f32()
    )?;
    Ok(())
}

/// Runs the command that the page shows, in the project's folder.
async fn import(visit: &Visit, command: &str) -> Result<()> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let words: Vec<&str> = command.split_whitespace().collect();
    ensure!(words.first() == Some(&"assay"), "{command}");
    let output = visit.default_organization.client(&words[1..]).current_dir(project).output().await?;
    ensure!(output.status.success(), "{command}: {output:?}");
    visit.default_organization.api()?.await_listed(("limit", "1"), 12).await
}
