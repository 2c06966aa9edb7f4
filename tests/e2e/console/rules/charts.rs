//! A chart has its table, and the two agree.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::browser::Viewer;
use crate::console::visit::Visit;

#[derive(Debug, Deserialize)]
struct Chart {
    title: String,
    label: String,
    /// Vertical positions of the points of this period: larger values are lower on the page.
    heights: Vec<f64>,
    /// Values of the table in the order of time; empty cells are none.
    values: Vec<f64>,
    rows: usize,
    has_canvas: bool,
    is_drawing_shown: bool,
}

const CHART: &str = r"{
  title: it.querySelector('h2').textContent,
  label: it.querySelector('svg[role=img]').getAttribute('aria-label'),
  heights: [...it.querySelectorAll('polyline.now')].flatMap((line) => [...line.points].map((point) => point.y)),
  values: [...it.querySelectorAll('tbody tr')].map((row) => Number.parseFloat(row.cells[1].textContent)).filter((value) => !Number.isNaN(value)),
  rows: it.querySelectorAll('tbody tr').length,
  has_canvas: it.querySelector('canvas') !== null,
  is_drawing_shown: it.querySelector('svg[role=img]').checkVisibility(),
}";

pub async fn run(visit: &mut Visit) -> Result<()> {
    for scripts in [true, false] {
        visit.reset(&Viewer { scripts, ..Viewer::default() }).await?;
        let browser = &mut visit.browser;
        browser.open("/console").await?;
        let charts: Vec<Chart> = browser.all(".trend", CHART).await?;
        ensure!(charts.len() == 4, "{} charts", charts.len());
        for chart in &charts {
            expect_agreement(chart).with_context(|| format!("{}: {chart:?}", chart.title))?;
            ensure!(
                chart.has_canvas == scripts && chart.is_drawing_shown != scripts,
                "scripts {scripts}: {chart:?}"
            );
        }
        // Every other chart is in a section with a table.
        let figures: Vec<String> = browser
            .all(
                "main svg[role=img]",
                "it.closest('section').querySelector('table') ? '' : it.outerHTML.slice(0, 200)",
            )
            .await?;
        ensure!(figures.iter().all(String::is_empty), "without a table: {figures:?}");
    }
    readout(visit).await
}

/// The line has one point for each value of the table, and a higher point has a larger value.
fn expect_agreement(chart: &Chart) -> Result<()> {
    ensure!(chart.rows == 28, "a row for each day");
    ensure!(
        chart.heights.len() == chart.values.len() && chart.values.len() > 10,
        "points and values differ in number"
    );
    ensure!(chart.label.contains("the table below has every value"), "the label does not lead to the table");
    for (at, value) in chart.values.iter().enumerate() {
        for (other_at, other) in chart.values.iter().enumerate() {
            // By more than half a pixel: positions are rounded.
            let is_higher = chart.heights[at] < chart.heights[other_at] - 0.5;
            ensure!(!is_higher || value > other, "{value} is drawn above {other}");
        }
    }
    Ok(())
}

/// The readout below the cursor has the value of the table.
async fn readout(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer::default()).await?;
    let browser = &mut visit.browser;
    browser.open("/console").await?;
    browser.point_at(".trend .u-over").await?;
    browser.wait_for("document.querySelector('.readout').textContent !== ''").await?;
    let read = browser.text(".readout").await?;
    let (day, value) = read.split_once(": ").with_context(|| read.clone())?;
    let row: Vec<String> = browser
        .all(
            ".trend:first-child tbody tr",
            &format!("it.cells[0].textContent === '{day}' ? it.cells[1].textContent : ''"),
        )
        .await?;
    let value = value.split(',').next().unwrap_or_default();
    let expected = row.iter().find(|text| !text.is_empty()).with_context(|| format!("no row of {day}"))?;
    ensure!(
        value == expected || (expected == "–" && value == "nothing scored"),
        "{read}, the table has {expected}"
    );
    Ok(())
}
