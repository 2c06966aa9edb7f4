//! `/docs` in a real browser: shows every operation and loads nothing from other hosts.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::browser::{self, Browser};
use crate::harness::Stack;

/// The page's files come with a strict policy; a browser shows all operations and reports no violation of it.
pub async fn run(stack: &Stack) -> Result<()> {
    let api = stack.api_with(None)?;
    let page = api.get("/docs/").await?;
    page.expect_status(200)?;
    ensure!(page.header("content-security-policy").starts_with("default-src 'none'"), "{page:?}");
    ensure!(!page.text().contains("//cdn"), "the page loads something from elsewhere");
    api.get("/docs/no-such-file.js").await?.problem(404, "route-not-found")?;
    let redirect = api.get("/docs").await?;
    ensure!(redirect.status == 308 && redirect.header("location") == "docs/", "{redirect:?}");

    let Some(program) = browser::program()? else { return Ok(()) };
    let (profile, log) = (stack.folder().join("browser"), stack.folder().join("browser.log"));
    let mut browser = Browser::start(&program, &profile, &log, stack.base_url()).await?;
    browser.open("/docs/").await?;
    for summary in summaries(&api.get("/openapi.json").await?.expect(200)?) {
        let text = serde_json::to_string(&summary)?;
        let is_shown = format!("document.documentElement.outerHTML.includes({text})");
        browser.wait_for(&is_shown).await.with_context(|| format!("the page does not show \"{summary}\""))?;
    }
    // Fonts and pictures are fetched after the text is there.
    browser.wait_for("document.readyState === 'complete' && document.fonts.status === 'loaded'").await?;
    let page_errors = browser.take_page_errors().await?;
    let is_violation =
        |text: &String| text.starts_with("violation: ") || text.contains("Content Security Policy");
    ensure!(!page_errors.iter().any(is_violation), "{page_errors:?}");
    browser.close().await
}

fn summaries(document: &Value) -> Vec<String> {
    let items = document["paths"].as_object().into_iter().flat_map(|paths| paths.values());
    let operations = items.filter_map(Value::as_object).flat_map(|item| item.values());
    operations.filter_map(|operation| operation["summary"].as_str()).map(str::to_owned).collect()
}
