//! Rule 2: every number opens the rows that add up to it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::console::visit::Visit;
use crate::harness::Cases;

/// A link with a number.
#[derive(Debug, Deserialize)]
struct Number {
    text: String,
    href: String,
    /// Where it stands, for messages.
    place: String,
}

const NUMBERS: &str = r"{
  text: it.textContent.trim(),
  href: it.getAttribute('href'),
  place: `${it.closest('section')?.querySelector('h2')?.textContent ?? 'coverage'}, ${it.closest('tr')?.textContent ?? ''}`,
}";

/// A page of rows: how many, and the scores of each.
#[derive(Debug, Deserialize)]
struct Rows {
    summary: String,
    ids: Vec<String>,
    axis: Vec<Option<f64>>,
    ra: Vec<Option<f64>>,
    ie: Vec<Option<f64>>,
    hs: Vec<Option<f64>>,
    next: Option<String>,
}

const ROWS: &str = r"(() => {
  const column = (label) => [...document.querySelectorAll(`#rows tbody td[data-label=${label}]`)].map((cell) => {
    const number = Number.parseFloat(cell.querySelector('b')?.textContent ?? cell.textContent);
    return Number.isNaN(number) ? null : number;
  });
  return {
    summary: document.querySelector('#summary').textContent,
    ids: [...document.querySelectorAll('#rows tbody tr')].map((row) => row.id),
    axis: column('AXIS'), ra: column('RA'), ie: column('IE'), hs: column('HS'),
    next: document.querySelector('#next-page')?.getAttribute('href') ?? null,
  };
})()";

const OVERVIEWS: [&str; 4] = [
    "/console",
    "/console?by=language&of=resolution_accuracy",
    "/console?period=all&by=involvement&of=interaction_effort&beside=nothing",
    "/console?period=7d&by=agent&of=handoff_smoothness",
];

/// Follows every link of the overviews to a list and compares the number with the rows: a count with how many there are, a mean
/// with the mean of theirs.
pub async fn run(visit: &mut Visit) -> Result<()> {
    let mut lists: BTreeMap<String, Rows> = BTreeMap::new();
    let mut cases = Cases::default();
    let mut numbers = 0;
    for overview in OVERVIEWS {
        let browser = &mut visit.browser;
        browser.open(overview).await?;
        browser
            .evaluate::<serde_json::Value>(
                "document.querySelectorAll('details').forEach((it) => it.open = true)",
            )
            .await?;
        let found: Vec<Number> = browser.all("main a[href^='/console/conversations']", NUMBERS).await?;
        let found: Vec<Number> = found
            .into_iter()
            .filter(|link| link.text.starts_with(|first: char| first.is_ascii_digit()))
            .collect();
        ensure!(found.len() > 30, "{overview} has {} numbers", found.len());
        for number in found {
            let (href, place) =
                (number.href.clone(), format!("{overview}: {} {}", number.place, number.text));
            if !lists.contains_key(&href) {
                let rows = rows(visit, overview, &href).await.with_context(|| place.clone())?;
                lists.insert(href.clone(), rows);
            }
            cases.check(place, adds_up(&number, &lists[&href]));
            numbers += 1;
        }
    }
    eprintln!("{numbers} numbers, {} lists", lists.len());
    cases.finish()
}

/// The rows of a list, from all its pages. The first one is opened by a click on the number itself.
async fn rows(visit: &mut Visit, overview: &str, href: &str) -> Result<Rows> {
    let browser = &mut visit.browser;
    if browser.address().await? != overview {
        browser.open(overview).await?;
        browser
            .evaluate::<serde_json::Value>(
                "document.querySelectorAll('details').forEach((it) => it.open = true)",
            )
            .await?;
    }
    browser.follow(&format!("main a[href='{href}']")).await?;
    ensure!(browser.address().await? == href, "it leads to {}", browser.address().await?);
    let mut rows: Rows = browser.evaluate(ROWS).await?;
    while let Some(next) = rows.next.take() {
        browser.open(&next).await?;
        let more: Rows = browser.evaluate(ROWS).await?;
        ensure!(!more.ids.is_empty(), "{next} is empty");
        rows.ids.extend(more.ids);
        rows.axis.extend(more.axis);
        rows.ra.extend(more.ra);
        rows.ie.extend(more.ie);
        rows.hs.extend(more.hs);
        rows.next = more.next;
    }
    Ok(rows)
}

fn adds_up(number: &Number, rows: &Rows) -> Result<()> {
    let distinct: std::collections::BTreeSet<&String> = rows.ids.iter().collect();
    ensure!(distinct.len() == rows.ids.len(), "rows are listed twice: {:?}", rows.ids);
    let text = number.text.replace(',', "");
    if !text.contains('.') {
        let count: usize = text.parse()?;
        ensure!(rows.ids.len() == count, "{} rows", rows.ids.len());
        ensure!(rows.summary.starts_with(&format!("{count} conversation")), "{}", rows.summary);
        return Ok(());
    }
    // The link of a mean does not say of which score: it is that of one of the four.
    let shown: f64 = text.parse()?;
    let means: Vec<f64> =
        [&rows.axis, &rows.ra, &rows.ie, &rows.hs].into_iter().filter_map(|column| mean(column)).collect();
    // Scores on pages have one decimal or two, means two.
    ensure!(means.iter().any(|mean| (mean - shown).abs() < 0.006), "the rows have the means {means:?}");
    Ok(())
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<Vec<f64>>>()?;
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}
