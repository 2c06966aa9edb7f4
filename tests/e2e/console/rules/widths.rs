//! No page is wider than the screen of a small phone, and its important buttons are within that width.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::browser::Viewer;
use crate::console::pages::pages;
use crate::console::visit::Visit;
use crate::harness::{conversation, edited, set};

const NARROW: u32 = 360;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let pages = pages(visit).await?;
    visit.reset(&Viewer { width: NARROW, ..Viewer::default() }).await?;
    let mut wide = Vec::new();
    let browser = &mut visit.browser;
    for page in pages {
        browser.open(&page.address).await?;
        let width = browser.needed_width().await?;
        if width > NARROW {
            let widest: Vec<String> = browser
                .all("body *", "it.getBoundingClientRect().right > innerWidth && !it.closest('.scroll, pre, .visually-hidden, .top ul') ? it.outerHTML.slice(0, 120) : ''")
                .await?;
            let widest: Vec<String> = widest.into_iter().filter(|text| !text.is_empty()).take(3).collect();
            wide.push(format!("{} needs {width} px: {widest:?}", page.name));
        }
    }
    // Discards the page errors so far: the browser reports pages with a 4xx status, which this rule allows.
    browser.take_page_errors().await?;
    ensure!(wide.is_empty(), "{}", wide.join("\n"));
    for (page, buttons) in [
        ("/console/exports", "main a[href$='/download']"),
        ("/console/keys", "main td summary.btn, main td > form button.btn"),
    ] {
        browser.open(page).await?;
        let cut: Vec<bool> = browser
            .all(buttons, "it.checkVisibility() && (it.getBoundingClientRect().left < 0 || it.getBoundingClientRect().right > innerWidth)")
            .await?;
        ensure!(!cut.is_empty() && !cut.contains(&true), "{page}: a button is cut off: {cut:?}");
    }
    titles(visit).await?;
    sign_in(visit).await
}

async fn sign_in(visit: &mut Visit) -> Result<()> {
    visit.browser.reset(&Viewer { width: NARROW, ..Viewer::default() }).await?;
    visit.browser.open("/console/sign-in").await?;
    let width = visit.browser.needed_width().await?;
    ensure!(width <= NARROW, "sign-in needs {width} px");
    Ok(())
}

/// On a wide screen the title of the overview is one line; a long subject is shown whole on the page of its conversation.
async fn titles(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer::default()).await?;
    let count_lines = "(() => { const all = document.createRange(); all.selectNodeContents(document.querySelector('#period')); return new Set([...all.getClientRects()].map((it) => it.top)).size })()";
    for query in ["", "?from=2025-10-26&to=2025-11-22", "?from=2025-09-21&to=2026-11-22"] {
        visit.browser.open(&format!("/console{query}")).await?;
        let lines: u32 = visit.browser.evaluate(count_lines).await?;
        ensure!(lines == 1, "{query}: the title has {lines} lines");
    }
    let subject = format!("Order {} is late", "58213-".repeat(80));
    let body = edited(conversation("long-subject"), &[set("/subject", json!(subject))]);
    let id = visit.import(&body).await?;
    for width in [NARROW, Viewer::default().width] {
        visit.reset(&Viewer { width, ..Viewer::default() }).await?;
        let browser = &mut visit.browser;
        browser.open(&format!("/console/conversations/{id}")).await?;
        browser.expect_text("h1", &subject).await?;
        let is_whole: bool = browser
            .evaluate("(() => { const it = document.querySelector('h1'); return it.scrollHeight <= it.clientHeight + 1 && it.scrollWidth <= it.clientWidth + 1 })()")
            .await?;
        ensure!(is_whole, "at {width} px the subject is cut");
    }
    Ok(())
}
