//! A page weighs at most 100 kB on the first visit and 30 kB after it, as bytes on the wire.

use anyhow::{Context, Result, ensure};
use std::io::Write;

use crate::browser::Viewer;
use crate::console::pages::pages;
use crate::console::visit::Visit;

const MAX_FIRST_BYTES: u64 = 100_000;
const MAX_NEXT_BYTES: u64 = 30_000;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let pages = pages(visit).await?;
    visit.reset(&Viewer::default()).await?;
    // The overview loads all files. Their weight is the difference between its first and its second visit.
    let overview = &pages.first().context("no page")?.address;
    let whole = weigh(visit, overview).await?;
    let files = whole.checked_sub(weigh(visit, overview).await?).context("nothing is cached")?;
    ensure!(files > 20_000, "the files weigh {files} bytes: they were not measured");
    let mut too_heavy = Vec::new();
    let mut heaviest = (whole, 0);
    for page in &pages {
        let next = weigh(visit, &page.address).await?;
        let first = files + next;
        heaviest = (heaviest.0.max(first), heaviest.1.max(next));
        ensure!(next > 500, "{}: {next} bytes: it was not measured", page.name);
        if first > MAX_FIRST_BYTES || next > MAX_NEXT_BYTES {
            too_heavy.push(format!("{} weighs at most {first} bytes, then {next}", page.name));
        }
    }
    // The browser reports pages with a 4xx status as errors; they are no failures of this rule.
    visit.browser.take_page_errors().await?;
    writeln!(
        std::io::stderr(),
        "the heaviest pages: {} bytes on the first visit, {} on the next",
        heaviest.0,
        heaviest.1
    )?;
    ensure!(too_heavy.is_empty(), "{}", too_heavy.join("\n"));
    Ok(())
}

/// Bytes on the wire of a page and its files; cached files are not counted.
async fn weigh(visit: &mut Visit, address: &str) -> Result<u64> {
    visit.browser.open(address).await?;
    visit.browser.loaded_bytes().await
}
