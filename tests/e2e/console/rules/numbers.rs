//! Every number opens the rows that add up to it, and a number that opens nothing is one of a few kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Context, Result, anyhow, ensure};
use serde::Deserialize;

use crate::console::visit::Visit;
use crate::harness::Cases;

/// A link with a number.
#[derive(Debug, Deserialize)]
struct Number {
    text: String,
    href: String,
    /// Its section and row, for messages.
    place: String,
    /// The title of its chart, or the header of its column.
    head: String,
}

const NUMBERS: &str = r"{
  text: it.textContent.trim(),
  href: it.getAttribute('href'),
  head: it.closest('.trend')?.querySelector('h2').textContent
    ?? it.closest('table')?.tHead.rows[0].cells[it.closest('td')?.cellIndex]?.textContent ?? '',
  place: `${it.closest('section')?.querySelector('h2')?.textContent ?? 'coverage'}, ${it.closest('tr')?.textContent ?? ''}`,
}";

/// The rows of a page, or of all pages of a list: their ids and scores, of AXIS and of its dimensions resolution accuracy (`ra`),
/// interaction effort (`ie`) and handoff smoothness (`hs`).
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

/// Reads the rows of a page of the list from its document.
const ROWS: &str = r"(page) => {
  const column = (label) => [...page.querySelectorAll(`#rows tbody td[data-label=${label}]`)].map((cell) => {
    const number = Number.parseFloat(cell.querySelector('b')?.textContent ?? cell.textContent);
    return Number.isNaN(number) ? null : number;
  });
  return {
    summary: page.querySelector('#summary').textContent,
    ids: [...page.querySelectorAll('#rows tbody tr')].map((row) => row.id),
    axis: column('AXIS'), ra: column('RA'), ie: column('IE'), hs: column('HS'),
    next: page.querySelector('#next-page')?.getAttribute('href') ?? null,
  };
}";

/// Reads all rows of a list. Its pages are fetched without being shown.
const LIST: &str = r"async (address, rowsOf) => {
  let all = null;
  while (address) {
    const response = await fetch(address);
    const rows = rowsOf(new DOMParser().parseFromString(await response.text(), 'text/html'));
    address = rows.next;
    if (!all) { all = rows; continue; }
    for (const name of ['ids', 'axis', 'ra', 'ie', 'hs']) all[name].push(...rows[name]);
  }
  return all;
}";

/// One number of each kind, to click on.
const CLICKED: [&str; 10] = [
    "#coverage a:nth-of-type(2)",
    // Not applicable: the conversations without AXIS.
    "#coverage a:nth-of-type(3)",
    ".trend .big a",
    ".trend tbody a",
    ".trend tbody td:nth-child(3) a",
    "#distribution a",
    "#bands a",
    "#charges a",
    "#reasons a",
    "#groups tbody tr:nth-child(2) td a",
];

/// Pages with numbers, and how many of them at least lead to rows.
const PAGES: [(&str, usize); 6] = [
    ("/console", 30),
    ("/console?by=language&of=resolution_accuracy", 30),
    ("/console?period=all&by=involvement&of=interaction_effort&beside=nothing", 30),
    ("/console?period=7d&by=agent&of=handoff_smoothness", 30),
    ("/console?from=2015-01-01&to=2026-12-31", 30),
    ("/console/imports", 3),
];

/// Numbers on the page that are not in a link. Axes of charts and codes have labels, not numbers of rows.
const UNLINKED: &str = r"(() => {
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const parent = walker.currentNode.parentElement;
    if (!/^\d[\d,.]*( %| conversations?\b.*)?$/.test(text) || parent.closest('a, svg, time, pre, code, form')) continue;
    found.push([text, parent.closest('tr, p')?.textContent ?? '']);
  }
  return found;
})()";

/// Compares every number of the pages with the list that it links to: a count with the number of rows, a mean with the
/// mean of their scores.
/// Pending imports are not checked here: no service lists them (`pending_imports_are_counted_and_announced`).
pub async fn run(visit: &mut Visit) -> Result<()> {
    let mut lists: BTreeMap<String, Rows> = BTreeMap::new();
    let mut cases = Cases::default();
    let (mut count, mut shares) = (0, 0);
    for (page, at_least) in PAGES {
        let numbers = numbers(visit, page).await?;
        ensure!(numbers.len() >= at_least, "{page} has {} numbers", numbers.len());
        let unlinked: Vec<(String, String)> = visit.browser.evaluate(UNLINKED).await?;
        for (text, place) in unlinked {
            // Zero has no rows; the counts in the row of a share lead to its rows.
            let is_known = text == "0" || text.ends_with(" %");
            let outcome = if is_known { Ok(()) } else { Err(anyhow!("it is no link")) };
            cases.check(format!("{page}: {place} {text}"), outcome);
        }
        for number in &numbers {
            let place = format!("{page}: {} {}", number.place, number.text);
            if !lists.contains_key(&number.href) {
                let address = serde_json::to_string(&number.href)?;
                let rows = visit.browser.evaluate(&format!("({LIST})({address}, {ROWS})")).await;
                lists.insert(number.href.clone(), rows.with_context(|| place.clone())?);
            }
            if !number.text.ends_with('%') {
                cases.check(place, adds_up(number, &lists[&number.href]));
            }
            count += 1;
        }
        shares += numbers.iter().filter(|number| number.text.ends_with('%')).count();
        cases.check(format!("{page}: shares"), shares_add_up(&numbers, &lists));
    }
    writeln!(std::io::stderr(), "{count} numbers, {shares} of them shares, {} lists", lists.len())?;
    ensure!(shares > 0, "no share of the period before is a link");
    for selector in CLICKED {
        cases.check(selector, click(visit, selector).await);
    }
    cases.finish()
}

/// The links of a page whose text is a number.
async fn numbers(visit: &mut Visit, page: &str) -> Result<Vec<Number>> {
    let browser = &mut visit.browser;
    browser.open(page).await?;
    let links: Vec<Number> = browser.all("main a[href^='/console/conversations']", NUMBERS).await?;
    Ok(links.into_iter().filter(|link| link.text.starts_with(|first: char| first.is_ascii_digit())).collect())
}

/// Clicks on a number, and compares it with the rows that are shown.
async fn click(visit: &mut Visit, selector: &str) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console").await?;
    browser.run("document.querySelectorAll('details').forEach((it) => it.open = true)").await?;
    let number: Vec<Number> = browser.all(selector, NUMBERS).await?;
    let number = number.into_iter().next().context("no such number")?;
    browser.follow(selector).await?;
    let address = browser.address().await?;
    ensure!(address == number.href, "it leads to {address}");
    let rows: Rows = browser.evaluate(&format!("({ROWS})(document)")).await?;
    // Lists of several pages are checked in `run`.
    if rows.next.is_none() { adds_up(&number, &rows) } else { Ok(()) }
}

fn adds_up(number: &Number, rows: &Rows) -> Result<()> {
    let distinct: BTreeSet<&String> = rows.ids.iter().collect();
    ensure!(distinct.len() == rows.ids.len(), "rows are listed twice: {:?}", rows.ids);
    let text = number.text.replace(',', "");
    let text = text.split(" conversation").next().unwrap_or_default();
    if !text.contains('.') {
        let count: usize = text.parse()?;
        ensure!(rows.ids.len() == count, "{} rows", rows.ids.len());
        ensure!(rows.summary.starts_with(&format!("{count} conversation")), "{}", rows.summary);
        return Ok(());
    }
    let shown: f64 = text.parse()?;
    let columns = [("AXIS", &rows.axis), ("RA", &rows.ra), ("IE", &rows.ie), ("HS", &rows.hs)];
    let column = columns.iter().find(|(name, _)| number.head.ends_with(name));
    let (name, column) = column.with_context(|| format!("a mean of \"{}\"", number.head))?;
    let mean = mean(column).context("not all rows have scores")?;
    // Means have two decimals.
    ensure!((mean - shown).abs() < 0.006, "the rows have the mean {mean} of {name}");
    Ok(())
}

/// The shares of an overview that are links are those of the charges in the period before.
fn shares_add_up(numbers: &[Number], lists: &BTreeMap<String, Rows>) -> Result<()> {
    let shares = numbers.iter().filter_map(|number| {
        let share = number.text.strip_suffix(" %")?;
        Some((share, u32::try_from(lists[&number.href].ids.len()).ok()?))
    });
    let shares: Vec<(&str, u32)> = shares.collect();
    let whole: u32 = shares.iter().map(|(_, count)| count).sum();
    for (share, count) in shares {
        let of_rows = f64::from(count) / f64::from(whole) * 100.0;
        // Shares have one decimal.
        ensure!((of_rows - share.parse::<f64>()?).abs() < 0.06, "the rows are {of_rows} %, not {share} %");
    }
    Ok(())
}

fn mean(values: &[Option<f64>]) -> Option<f64> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<Vec<f64>>>()?;
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}
