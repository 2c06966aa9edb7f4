//! The error of an invalid filter is shown beside its field, and no input is lost: with scripts and without.

use anyhow::{Result, ensure};

use crate::browser::Viewer;
use crate::console::visit::Visit;

/// Fields of the form and what is typed into them: two invalid numbers, and a text that must stay as it is.
const FIELDS: [(&str, &str); 3] =
    [("axis_min", "9,5"), ("confidence_max", "half"), ("subject", "order  <b>")];

pub async fn run(visit: &mut Visit) -> Result<()> {
    for scripts in [true, false] {
        visit.reset(&Viewer { scripts, ..Viewer::default() }).await?;
        fill_in(visit, scripts).await?;
    }
    period(visit).await?;
    other_forms(visit).await
}

/// A search and a choice of columns keep a refused filter, too; exports lead to the form in which it is corrected.
async fn other_forms(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer { scripts: false, ..Viewer::default() }).await?;
    let browser = &mut visit.browser;
    browser.open("/console/conversations?axis_min=9,5&charge=review").await?;
    browser.fill("#search", "late").await?;
    browser.follow("#search-button").await?;
    browser.expect_in_address(&["axis_min=9%2C5", "charge=review", "search=late"]).await?;
    browser.open("/console/conversations?charge=maybe&charge=review&nosuch=1").await?;
    for value in ["maybe", "1"] {
        browser.click(&format!("#filter-form [value='{value}']")).await?;
    }
    browser.follow("#apply").await?;
    // The refused values can be removed.
    browser.expect_address("/console/conversations?charge=review").await?;
    browser.open("/console/conversations?from=2026-02-01&to=2026-01-31").await?;
    ensure!(browser.has("#from-fault").await?, "a period that ends before it begins is not refused");
    browser.open("/console/exports?axis_min=9,5&charge=review").await?;
    ensure!(!browser.has("#new button").await?, "an export of a refused filter is offered");
    browser.follow("#filter-link").await?;
    let values: Vec<String> = browser.all("#filter-form [name=axis_min]", "it.value").await?;
    ensure!(values == ["9,5"], "{values:?}");
    ensure!(browser.has("#axis_min-fault").await?, "nothing is said beside the field");
    browser.expect_only_page_errors("status of 400").await
}

/// The period of the overview: invalid days stay in their fields, even those that a date field cannot hold.
async fn period(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console?from=2026-02-30&to=yesterday").await?;
    let values: Vec<String> = browser.all("#from, #to", "it.value").await?;
    ensure!(values == ["2026-02-30", "yesterday"], "{values:?}");
    let said = browser.text("#from-fault").await?;
    ensure!(said.contains("Give a day"), "{said}");
    browser.expect_only_page_errors("status of 400").await
}

async fn fill_in(visit: &mut Visit, scripts: bool) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console/conversations?charge=review").await?;
    browser.click("#filters-button").await?;
    for (name, text) in FIELDS {
        browser.fill(&format!("#filter-form [name={name}]"), text).await?;
    }
    browser.click("#filter-form [name=handoff][value=completed]").await?;
    if scripts {
        browser.click("#apply").await?;
        browser.wait_for("document.querySelector('#faults') !== null").await?;
    } else {
        browser.follow("#apply").await?;
    }
    for (name, text) in FIELDS {
        let mut values: Vec<String> = browser.all(&format!("#filter-form [name={name}]"), "it.value").await?;
        // Filters with several values have an empty field for one more.
        values.retain(|value| !value.is_empty());
        ensure!(values == [text], "scripts {scripts}: {name} lost \"{text}\": {values:?}");
    }
    for (name, value) in [("charge", "review"), ("handoff", "completed")] {
        let checked: Vec<bool> =
            browser.all(&format!("#filter-form [name={name}][value={value}]"), "it.checked").await?;
        ensure!(checked == [true], "scripts {scripts}: {name}={value} is lost");
    }
    for name in ["axis_min", "confidence_max"] {
        let described: Vec<(String, String)> = browser
            .all(
                &format!("#filter-form [name={name}][aria-invalid=true]"),
                "[it.getAttribute('aria-describedby'), document.getElementById(it.getAttribute('aria-describedby'))?.innerText ?? '']",
            )
            .await?;
        ensure!(
            matches!(&described[..], [(id, text)] if *id == format!("{name}-fault") && text.len() > 10),
            "scripts {scripts}: nothing is said beside {name}: {described:?}"
        );
    }
    // The browser reports pages with status 400 as failed loads; nothing else may be reported.
    browser.expect_only_page_errors("status of 400").await
}
