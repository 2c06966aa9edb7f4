//! Rule 7: a page weighs at most 100 kB on the first visit and 30 kB after it, as bytes on the wire.

use anyhow::{Result, ensure};

use crate::browser::Viewer;
use crate::console::pages::pages;
use crate::console::visit::Visit;

const FIRST: u64 = 100_000;
const NEXT: u64 = 30_000;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let pages = pages(visit).await?;
    let mut faults = Vec::new();
    let mut heaviest = (0, 0);
    for page in &pages {
        visit.renew(&Viewer::default()).await?;
        let first = weigh(visit, &page.address).await?;
        let next = weigh(visit, &page.address).await?;
        heaviest = (heaviest.0.max(first), heaviest.1.max(next));
        ensure!(first > next && next > 500, "{}: {first}, then {next}: nothing was measured", page.name);
        if first > FIRST || next > NEXT {
            faults.push(format!("{} weighs {first} bytes, then {next}", page.name));
        }
    }
    visit.browser.complaints().await?;
    eprintln!("the heaviest pages: {} bytes on the first visit, {} on the next", heaviest.0, heaviest.1);
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(())
}

/// Bytes on the wire of a page and all its files; from the cache nothing is loaded.
async fn weigh(visit: &mut Visit, address: &str) -> Result<u64> {
    visit.browser.open(address).await?;
    visit.browser.loaded_bytes().await
}
