//! Next and previous follow the filter and the order of the list.

use anyhow::{Context, Result, ensure};

use crate::browser::Browser;
use crate::console::visit::Visit;

/// Lists, each with the index of the conversation that is opened first. From there the test follows "next" at most
/// [`MAX_STEPS`] times; in the first list this crosses the end of a page.
const LISTS: [(&str, usize); 2] = [
    ("/console/conversations?charge=disputed&charge=review&sort=axis", 21),
    ("/console/conversations?language=de&language=fr&sort=-confidence", 0),
];
const MAX_STEPS: usize = 8;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    for (list, from) in LISTS {
        let ids = ids_of(browser, list).await?;
        ensure!(ids.len() > from + 3, "{list} has {} rows", ids.len());
        walk(browser, list, &ids, from).await.with_context(|| list.to_owned())?;
    }
    Ok(())
}

/// The conversations of a list in its order, over all its pages.
async fn ids_of(browser: &mut Browser, list: &str) -> Result<Vec<String>> {
    browser.open(list).await?;
    let mut ids: Vec<String> = Vec::new();
    loop {
        ids.extend(browser.all::<String>("#rows tbody tr", "it.id.replace('row-', '')").await?);
        let next: Vec<String> = browser.all("#next-page", "it.getAttribute('href')").await?;
        match next.first() {
            Some(next) => browser.open(next).await?,
            None => return Ok(ids),
        }
    }
}

async fn walk(browser: &mut Browser, list: &str, ids: &[String], from: usize) -> Result<()> {
    browser.open(list).await?;
    browser.follow(&format!("#row-{} .subject a", ids[from])).await?;
    let last = (from + MAX_STEPS).min(ids.len() - 1);
    for at in from..=last {
        expect_position(browser, at, ids).await?;
        if at < last {
            browser.follow("#next").await?;
        }
    }
    let has_next = browser.has("#next").await?;
    ensure!(
        has_next == (last + 1 < ids.len()),
        "number {} of {} has a next one: {has_next}",
        last + 1,
        ids.len()
    );
    for at in (from..last).rev() {
        browser.follow("#previous").await?;
        expect_position(browser, at, ids).await?;
    }
    let has_previous = browser.has("#previous").await?;
    ensure!(has_previous == (from > 0), "number {} has a previous one: {has_previous}", from + 1);
    browser.follow("#back").await?;
    let address = browser.address().await?;
    let sorted = |address: &str| {
        let mut parts: Vec<String> = address.split(['?', '&']).map(str::to_owned).collect();
        parts.sort();
        parts
    };
    ensure!(sorted(&address) == sorted(list), "the way back leads to {address}");
    Ok(())
}

/// The page is that of the conversation at this index, and says which number it is.
async fn expect_position(browser: &mut Browser, at: usize, ids: &[String]) -> Result<()> {
    browser.expect_in_address(&[ids[at].as_str()]).await?;
    let position = browser.text("#position").await?;
    let expected = format!("{} of {}", at + 1, ids.len());
    ensure!(position.starts_with(&expected), "{position} instead of {expected}");
    Ok(())
}
