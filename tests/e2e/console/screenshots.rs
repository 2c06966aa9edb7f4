//! Screenshots of every page in both themes and two widths, for visual review.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};

use super::hostile;
use super::pages::pages;
use super::visit::{Visit, screenshots_folder};
use crate::browser::Viewer;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let folder = screenshots_folder();
    fs::create_dir_all(&folder)?;
    let mut shown: Vec<(String, String)> =
        pages(visit).await?.into_iter().map(|page| (page.name.to_owned(), page.address)).collect();
    visit.api.register("hostile-bot").await?;
    let id = visit.import(&hostile::conversation("hostile-bot")).await?;
    shown.push(("conversation-hostile".to_owned(), format!("/console/conversations/{id}")));
    shown.push(("conversations-hostile".to_owned(), "/console/conversations?subject=script".to_owned()));
    for (width, dark) in [(1440, false), (1440, true), (360, false), (360, true)] {
        let theme = if dark { "dark" } else { "light" };
        visit.reset(&Viewer { width, dark, ..Viewer::default() }).await?;
        for (name, address) in &shown {
            visit.browser.open(address).await?;
            take(visit, &format!("{name}-{width}-{theme}")).await?;
        }
        visit.browser.open("/console/conversations?charge=disputed").await?;
        visit.browser.click("#filters-button").await?;
        take(visit, &format!("conversations-filters-{width}-{theme}")).await?;
        visit.browser.press("?").await?;
        visit.browser.wait_for("document.querySelector('dialog#help')?.open === true").await?;
        take(visit, &format!("keyboard-{width}-{theme}")).await?;
        visit.browser.reset(&Viewer { width, dark, ..Viewer::default() }).await?;
        visit.browser.open("/console/sign-in").await?;
        take(visit, &format!("sign-in-{width}-{theme}")).await?;
    }
    visit.browser.take_page_errors().await?;
    writeln!(std::io::stderr(), "screenshots: {}", folder.display())?;
    Ok(())
}

async fn take(visit: &mut Visit, name: &str) -> Result<()> {
    let screenshot = visit.browser.screenshot().await.with_context(|| name.to_owned())?;
    fs::write(screenshots_folder().join(format!("{name}.png")), screenshot)?;
    Ok(())
}
