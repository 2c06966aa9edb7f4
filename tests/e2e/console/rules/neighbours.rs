//! Next and previous follow the filter and the order of the list.

use anyhow::{Context, Result, ensure};

use crate::console::visit::Visit;

/// Lists, each with the index of the conversation that is opened first. From there the test follows "next" at most
/// [`MAX_STEPS`] times; in the first list this crosses the end of a page.
const LISTS: [(&str, usize); 2] = [
    ("/console/conversations?charge=disputed&charge=review&sort=axis", 21),
    ("/console/conversations?language=de&language=fr&sort=-confidence", 0),
];
const MAX_STEPS: usize = 8;

pub async fn run(visit: &mut Visit) -> Result<()> {
    for (list, from) in LISTS {
        let ids = ids_of(visit, list).await?;
        ensure!(ids.len() > from + 3, "{list} has {} rows", ids.len());
        walk(visit, list, &ids, from).await.with_context(|| list.to_owned())?;
    }
    Ok(())
}

/// The conversations of a list in its order, over all its pages.
async fn ids_of(visit: &mut Visit, list: &str) -> Result<Vec<String>> {
    let browser = &mut visit.browser;
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

async fn walk(visit: &mut Visit, list: &str, ids: &[String], from: usize) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open(list).await?;
    browser.follow(&format!("#row-{} .subject a", ids[from])).await?;
    let last = (from + MAX_STEPS).min(ids.len() - 1);
    for at in from..=last {
        expect_position(visit, at, ids).await?;
        if at < last {
            visit.browser.follow("#next").await?;
        }
    }
    let has_next = visit.browser.has("#next").await?;
    ensure!(
        has_next == (last + 1 < ids.len()),
        "number {} of {} has a next one: {has_next}",
        last + 1,
        ids.len()
    );
    for at in (from..last).rev() {
        visit.browser.follow("#previous").await?;
        expect_position(visit, at, ids).await?;
    }
    let has_previous = visit.browser.has("#previous").await?;
    ensure!(has_previous == (from > 0), "number {} has a previous one: {has_previous}", from + 1);
    visit.browser.follow("#back").await?;
    let address = visit.browser.address().await?;
    ensure!(same_query(&address, list), "the way back leads to {address}");
    Ok(())
}

/// The page is that of the conversation at this index, and says which number it is.
async fn expect_position(visit: &mut Visit, at: usize, ids: &[String]) -> Result<()> {
    let (id, count) = (&ids[at], ids.len());
    let address = visit.browser.address().await?;
    ensure!(address.contains(id.as_str()), "number {} is {address}, not {id}", at + 1);
    let position = visit.browser.text("#position").await?;
    let expected = format!("{} of {count}", at + 1);
    ensure!(position.starts_with(&expected), "{position} instead of {expected}");
    Ok(())
}

/// Whether two addresses have the same parameters, in any order.
fn same_query(one: &str, other: &str) -> bool {
    let sorted = |address: &str| {
        let mut parts: Vec<String> = address.split(['?', '&']).map(str::to_owned).collect();
        parts.sort();
        parts
    };
    sorted(one) == sorted(other)
}
