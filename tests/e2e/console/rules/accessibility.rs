//! Axe-core finds nothing serious or critical on any page, in both themes, at 360 and 1440 pixels; nor on the sign-in page, nor
//! in what the list opens.

use anyhow::{Result, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::browser::Viewer;
use crate::console::pages::pages;
use crate::console::visit::Visit;

/// axe-core 4.14.1 of its npm package (MPL-2.0), unchanged: see NOTICE.
const AXE: &str = include_str!("../vendor/axe-4.14.1.min.js");
const AXE_SHA256: &str = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c";

/// Width, whether dark, and options of axe: in the dark theme only rules about colours can give other results.
const VIEWERS: [(u32, bool, &str); 4] =
    [(1440, false, ALL), (1440, true, COLOURS), (360, false, ALL), (360, true, COLOURS)];
const ALL: &str = "{}";
const COLOURS: &str = "{ runOnly: ['color-contrast', 'link-in-text-block'] }";

/// A violation: the rule of axe, its impact, and the elements.
#[derive(Deserialize)]
struct Violation {
    id: String,
    impact: Option<String>,
    places: Vec<String>,
}

const RUN: &str = r"(options) => axe.run(document, { resultTypes: ['violations'], ...options }).then((found) => ({
  violations: found.violations.map(({ id, impact, nodes }) => ({
    id, impact, places: nodes.slice(0, 3).map((node) => `${node.target}: ${node.failureSummary}`),
  })),
  passes: found.passes.length,
}))";

#[derive(Deserialize)]
struct Found {
    violations: Vec<Violation>,
    passes: usize,
}

/// What the list shows only after a click: its name, its button, and the open element.
const OPENED: [(&str, &str, &str); 3] = [
    ("filter panel", "#filters-button", "#filters[open]"),
    ("menu of columns", "#columns-button", "#columns.menu[open]"),
    ("help", "#help-link", "dialog#help[open]"),
];

/// Pages without a session: name, address, and an element of each.
const SIGN_IN: [(&str, &str, &str); 2] = [
    ("sign-in", "/console/sign-in", "#sign-in #key"),
    ("sign-in by a used address", "/console/sign-in?token=AAAA", "#link-fault"),
];

pub async fn run(visit: &mut Visit) -> Result<()> {
    let hash: String = Sha256::digest(AXE).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(hash == AXE_SHA256, "axe-core is not the pinned one: {hash}");
    expect_violations_are_found(visit).await?;
    let mut violations = on_all_pages(visit).await?;
    violations.extend(on_the_sign_in_page(visit).await?);
    violations.extend(on_opened_parts(visit).await?);
    ensure!(violations.is_empty(), "{} violations:\n{}", violations.len(), violations.join("\n"));
    Ok(())
}

/// Violations on every page, with its details open but for menus.
async fn on_all_pages(visit: &mut Visit) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for page in pages(visit).await? {
        open_with_axe(visit, &page.address).await?;
        let open_details = "document.querySelectorAll('details:not(.menu)').forEach((it) => it.open = true)";
        visit.browser.run(open_details).await?;
        violations.extend(check_as_viewers(visit, page.name).await?);
    }
    // The browser reports every response with a 4xx status as an error.
    visit.browser.expect_only_page_errors("status of 4").await?;
    Ok(violations)
}

async fn on_the_sign_in_page(visit: &mut Visit) -> Result<Vec<String>> {
    visit.browser.reset(&Viewer::default()).await?;
    let mut violations = Vec::new();
    for (name, address, shown) in SIGN_IN {
        open_with_axe(visit, address).await?;
        ensure!(visit.browser.has(shown).await?, "{address} is not the page {name}");
        violations.extend(check_as_viewers(visit, name).await?);
    }
    visit.browser.expect_only_page_errors("status of 403").await?;
    Ok(violations)
}

/// Violations on the list with its panel, its menu or the help open.
async fn on_opened_parts(visit: &mut Visit) -> Result<Vec<String>> {
    visit.reset(&Viewer::default()).await?;
    let mut violations = Vec::new();
    for (name, button, opened) in OPENED {
        open_with_axe(visit, "/console/conversations?charge=disputed").await?;
        visit.browser.click(button).await?;
        visit.browser.wait_for(&format!("document.querySelector('{opened}') !== null")).await?;
        violations.extend(check_as_viewers(visit, &format!("open {name}")).await?);
        visit.browser.emulate(&Viewer::default()).await?;
    }
    let menus: Vec<String> = visit.browser.all("details.menu", "it.id").await?;
    ensure!(menus == ["columns"], "the list has menus that are not checked: {menus:?}");
    Ok(violations)
}

/// Opens a page, and loads axe into it.
async fn open_with_axe(visit: &mut Visit, address: &str) -> Result<()> {
    visit.browser.open(address).await?;
    visit.browser.run(&format!("{AXE};null")).await
}

/// The serious violations on the page in both themes and two widths.
async fn check_as_viewers(visit: &mut Visit, name: &str) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for (width, dark, options) in VIEWERS {
        visit.browser.emulate(&Viewer { width, dark, ..Viewer::default() }).await?;
        let place = format!("{name} at {width} px, dark {dark}");
        violations.extend(check(visit, &place, options).await?);
    }
    Ok(violations)
}

/// The serious violations on the page as it is now, with the name of the place.
async fn check(visit: &mut Visit, place: &str, options: &str) -> Result<Vec<String>> {
    let found: Found = visit.browser.evaluate(&format!("({RUN})({options})")).await?;
    ensure!(
        found.passes > 5 || (options == COLOURS && found.passes > 0),
        "{place}: only {} rules of axe passed",
        found.passes
    );
    let bad = found.violations.into_iter().filter(is_bad);
    Ok(bad.map(|it| format!("{place}: {}\n{}", it.id, it.places.join("\n"))).collect())
}

fn is_bad(violation: &Violation) -> bool {
    matches!(violation.impact.as_deref(), Some("serious" | "critical"))
}

/// axe finds an input without a label and a link without a text.
async fn expect_violations_are_found(visit: &mut Visit) -> Result<()> {
    open_with_axe(visit, "/console/help").await?;
    let browser = &mut visit.browser;
    browser
        .run(
            "document.querySelector('main').append(document.createElement('input')); document.querySelector('#help-link').textContent = ''",
        )
        .await?;
    let found: Found = browser.evaluate(&format!("({RUN})({ALL})")).await?;
    let ids: Vec<&str> = found.violations.iter().filter(|it| is_bad(it)).map(|it| it.id.as_str()).collect();
    ensure!(ids.contains(&"label") && ids.contains(&"link-name"), "axe found {ids:?}");
    Ok(())
}
