//! No page needs more than the width of a small telephone.

use anyhow::{Result, ensure};

use crate::browser::Viewer;
use crate::console::pages::pages;
use crate::console::visit::Visit;

const NARROW: u32 = 360;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let pages = pages(visit).await?;
    visit.renew(&Viewer { width: NARROW, ..Viewer::default() }).await?;
    let mut wide = Vec::new();
    for page in pages {
        visit.browser.open(&page.address).await?;
        let width = visit.needed_width().await?;
        if width > NARROW {
            let widest: Vec<String> = visit
                .browser
                .all("body *", "it.getBoundingClientRect().right > innerWidth && !it.closest('.scroll, pre, .visually-hidden, .top ul') ? it.outerHTML.slice(0, 120) : ''")
                .await?;
            let widest: Vec<String> = widest.into_iter().filter(|text| !text.is_empty()).take(3).collect();
            wide.push(format!("{} needs {width} px: {widest:?}", page.name));
        }
    }
    visit.browser.complaints().await?;
    ensure!(wide.is_empty(), "{}", wide.join("\n"));
    Ok(())
}
