//! A printed page is dark text on white paper, in both themes.

use anyhow::{Result, ensure};

use crate::browser::Viewer;
use crate::console::pages::pages;
use crate::console::visit::Visit;

/// Background of the page, and colour of its text.
const COLOURS: &str =
    "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]";

pub async fn run(visit: &mut Visit) -> Result<()> {
    let pages = pages(visit).await?;
    for theme in ["dark", "light"] {
        visit.browser.open(&format!("/console/theme?to={theme}&back=%2Fconsole")).await?;
        visit.browser.emulate(&Viewer { prints: true, dark: theme == "dark", ..Viewer::default() }).await?;
        for page in &pages {
            visit.browser.open(&page.address).await?;
            let (paper, text): (String, String) = visit.browser.evaluate(COLOURS).await?;
            ensure!(paper == "rgb(255, 255, 255)", "{} in the theme {theme}: paper is {paper}", page.name);
            ensure!(text == "rgb(27, 29, 33)", "{} in the theme {theme}: text is {text}", page.name);
        }
    }
    // The browser reports pages with a 4xx status as errors; they are no failures of this rule.
    visit.browser.take_page_errors().await?;
    visit.browser.open("/console/theme?to=system&back=%2Fconsole").await
}
