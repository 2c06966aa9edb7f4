//! Screenshots of every page in both themes and two widths, for visual review.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result, ensure};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, SqliteConnection};
use reqwest::Method;
use serde_json::json;

use super::hostile;
use super::pages::pages;
use super::visit::{Visit, screenshots_folder};
use crate::browser::Viewer;
use crate::harness::until;

/// Width, and whether dark.
const VIEWERS: [(u32, bool); 4] = [(1440, false), (1440, true), (360, false), (360, true)];

/// Bytes of a filter with which an address is longer than the gateway accepts.
const LONG_BYTES: usize = 8 * 1024;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let folder = screenshots_folder();
    fs::create_dir_all(&folder)?;
    let mut shown: Vec<(String, String)> =
        pages(visit).await?.into_iter().map(|page| (page.name.to_owned(), page.address)).collect();
    visit.api.register("hostile-bot").await?;
    let id = visit.import(&hostile::conversation("hostile-bot")).await?;
    shown.push(("conversation-hostile".to_owned(), format!("/console/conversations/{id}")));
    shown.push(("conversations-hostile".to_owned(), "/console/conversations?subject=script".to_owned()));
    let too_long = format!("/console/conversations?subject={}", "x".repeat(LONG_BYTES));
    shown.push(("address-too-long".to_owned(), too_long));
    for (width, dark) in VIEWERS {
        let suffix = reset(visit, width, dark).await?;
        for (name, address) in &shown {
            visit.browser.open(address).await?;
            take(visit, &format!("{name}-{suffix}")).await?;
        }
        visit.browser.open("/console/conversations?charge=disputed").await?;
        visit.browser.click("#filters-button").await?;
        take(visit, &format!("conversations-filters-{suffix}")).await?;
        visit.browser.press("?").await?;
        visit.browser.wait_for("document.querySelector('dialog#help')?.open === true").await?;
        take(visit, &format!("keyboard-{suffix}")).await?;
        visit.browser.reset(&Viewer { width, dark, ..Viewer::default() }).await?;
        visit.browser.open("/console/sign-in").await?;
        take(visit, &format!("sign-in-{suffix}")).await?;
    }
    for (width, dark) in VIEWERS {
        let suffix = reset(visit, width, dark).await?;
        unavailable(visit).await.context("503")?;
        take(visit, &format!("unavailable-{suffix}")).await?;
    }
    let webhook = json!({"url": "http://127.0.0.1:1024/limits", "events": ["export.failed"]});
    let webhook = visit.api.post("/v1/webhooks", &webhook).await?.expect(201)?;
    let webhook = webhook["id"].as_str().context("no id")?;
    for (width, dark) in VIEWERS {
        let suffix = reset(visit, width, dark).await?;
        too_many_requests(visit, webhook).await.context("429")?;
        take(visit, &format!("too-many-requests-{suffix}")).await?;
    }
    visit.browser.take_page_errors().await?;
    writeln!(std::io::stderr(), "screenshots: {}", folder.display())?;
    Ok(())
}

/// A new tab; returns the end of the names of its pictures.
async fn reset(visit: &mut Visit, width: u32, dark: bool) -> Result<String> {
    visit.reset(&Viewer { width, dark, ..Viewer::default() }).await?;
    Ok(format!("{width}-{}", if dark { "dark" } else { "light" }))
}

/// Shows the page of a test message beyond the limit, which the API has used up.
async fn too_many_requests(visit: &mut Visit, webhook: &str) -> Result<()> {
    let (api, browser) = (&visit.api, &mut visit.browser);
    // While the page opens, one more may be allowed.
    until("a refused test message", async || {
        let test = || api.request(Method::POST, &format!("/v1/webhooks/{webhook}/test"));
        while api.reply(test()).await?.status == 202 {}
        browser.open(&format!("/console/webhooks/{webhook}")).await?;
        browser.follow("#actions [value=test]").await?;
        Ok((browser.text("h1").await? == "Too many requests").then_some(()))
    })
    .await
}

/// Shows the page of a form that agent-registry cannot store, because another process holds its database.
async fn unavailable(visit: &mut Visit) -> Result<()> {
    let database = visit.stack.data().join("registry.sqlite");
    let browser = &mut visit.browser;
    browser.open("/console/agents").await?;
    for (field, text) in [("#external_id", "returns-bot"), ("#name", "Returns")] {
        browser.click(field).await?;
        browser.type_text(text).await?;
    }
    let mut lock = SqliteConnection::establish(database.to_str().context("the folder is no text")?)?;
    lock.batch_execute("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE")?;
    browser.follow("#new button[type=submit]").await?;
    drop(lock);
    let title = browser.text("h1").await?;
    ensure!(title == "Not available at the moment", "{title}");
    Ok(())
}

async fn take(visit: &mut Visit, name: &str) -> Result<()> {
    let screenshot = visit.browser.screenshot().await.with_context(|| name.to_owned())?;
    fs::write(screenshots_folder().join(format!("{name}.png")), screenshot)?;
    Ok(())
}
