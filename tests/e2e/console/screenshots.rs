//! Pictures of every page in both themes and two widths, for people to look at.

use std::fs;
use std::io::Write;

use anyhow::{Context, Result};

use super::hostile;
use super::pages::pages;
use super::visit::{Visit, pictures};
use crate::browser::Viewer;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let folder = pictures();
    fs::create_dir_all(&folder)?;
    let mut shown: Vec<(String, String)> =
        pages(visit).await?.into_iter().map(|page| (page.name.to_owned(), page.address)).collect();
    visit.api.register("hostile-bot").await?;
    let id = visit.import(&hostile::conversation("hostile-bot")).await?;
    shown.push(("conversation-hostile".to_owned(), format!("/console/conversations/{id}")));
    shown.push(("conversations-hostile".to_owned(), "/console/conversations?subject=script".to_owned()));
    for (width, dark) in [(1440, false), (1440, true), (360, false), (360, true)] {
        let theme = if dark { "dark" } else { "light" };
        visit.renew(&Viewer { width, dark, ..Viewer::default() }).await?;
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
        visit.browser.renew(&Viewer { width, dark, ..Viewer::default() }).await?;
        visit.browser.open("/console/sign-in").await?;
        take(visit, &format!("sign-in-{width}-{theme}")).await?;
    }
    visit.browser.complaints().await?;
    writeln!(std::io::stderr(), "pictures: {}", folder.display())?;
    Ok(())
}

async fn take(visit: &mut Visit, name: &str) -> Result<()> {
    let picture = visit.browser.picture().await.with_context(|| name.to_owned())?;
    fs::write(pictures().join(format!("{name}.png")), picture)?;
    Ok(())
}
