//! The URL is the state of a page; reload, back and share show the same.

use anyhow::{Context, Result, ensure};
use assay_contracts::time::DAY_MILLIS;
use assay_platform::runtime::now;

use crate::browser::Viewer;
use crate::console::pages::first_id;
use crate::console::visit::Visit;

const MAIN: &str = "document.querySelector('main').innerText";

const ADDRESSES: [&str; 4] = [
    "/console?period=all&by=language&of=resolution_accuracy",
    "/console/conversations?charge=disputed&charge=review&sort=axis&column=subject&column=axis&column=language",
    "/console/conversations?subject=order&band=good&band=mixed&sort=-confidence",
    "/console/exports?charge=review&axis_min=2.5",
];

pub async fn run(visit: &mut Visit) -> Result<()> {
    let addresses = [&ADDRESSES.map(str::to_owned)[..], &addresses_of_corpus(visit).await?].concat();
    for address in &addresses {
        let browser = &mut visit.browser;
        browser.open(address).await?;
        let shown: String = browser.evaluate(MAIN).await?;
        browser.reload().await?;
        ensure!(browser.evaluate::<String>(MAIN).await? == shown, "{address} is another page after a reload");
        visit.reset(&Viewer::default()).await?;
        visit.browser.open(address).await?;
        let shown_again: String = visit.browser.evaluate(MAIN).await?;
        ensure!(shown_again == shown, "{address} is another page in another browser");
    }
    list_changes(visit).await?;
    form_keeps_the_state(visit).await?;
    order_of_a_narrow_page(visit).await
}

/// A conversation opened from a filtered list, the overview of days with conversations, and their imports.
async fn addresses_of_corpus(visit: &Visit) -> Result<[String; 3]> {
    const LIST: &str = "charge=disputed&charge=review&sort=axis";
    let id = first_id(visit, LIST).await?;
    let day_before = |days: i64| now().plus_millis(-days * DAY_MILLIS).to_string()[..10].to_owned();
    let (from, to) = (day_before(20), day_before(10));
    Ok([
        format!("/console/conversations/{id}?{LIST}"),
        format!("/console?from={from}&to={to}&by=agent&beside=year"),
        format!("/console/imports?from={from}"),
    ])
}

/// A changed filter keeps all values of the others, the order and the columns.
async fn form_keeps_the_state(visit: &mut Visit) -> Result<()> {
    visit.reset(&Viewer { scripts: false, ..Viewer::default() }).await?;
    let browser = &mut visit.browser;
    browser.open("/console/conversations?source=intercom&source=zendesk&sort=axis&column=axis").await?;
    browser.click("#filters-button").await?;
    browser.click("#filter-form [name=charge][value=review]").await?;
    browser.follow("#apply").await?;
    let kept = ["source=intercom&source=zendesk", "charge=review", "sort=axis", "column=axis"];
    browser.expect_in_address(&kept).await?;
    let values: Vec<String> = browser.all("#filter-form [name=source]", "it.value").await?;
    ensure!(values == ["intercom", "zendesk", ""], "{values:?}");
    Ok(())
}

/// A narrow page shows no heads of columns: a form sorts its list.
async fn order_of_a_narrow_page(visit: &mut Visit) -> Result<()> {
    let is_shown = "document.querySelector('#order-form').checkVisibility()";
    ensure!(!visit.browser.evaluate::<bool>(is_shown).await?, "a wide page has two ways to sort");
    visit.reset(&Viewer { width: 360, scripts: false, ..Viewer::default() }).await?;
    let browser = &mut visit.browser;
    browser.open("/console/conversations?charge=disputed&charge=review").await?;
    ensure!(browser.evaluate::<bool>(is_shown).await?, "a narrow page cannot be sorted");
    let _: String = browser.evaluate("document.querySelector('#order').value = 'axis'").await?;
    browser.follow("#order-apply").await?;
    browser.expect_in_address(&["charge=review", "charge=disputed", "sort=axis"]).await?;
    let chosen: String = browser.evaluate("document.querySelector('#order').value").await?;
    ensure!(chosen == "axis", "{chosen}");
    Ok(())
}

/// Every change of the list changes the URL; going back shows the earlier list.
async fn list_changes(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console/conversations?charge=disputed&charge=review").await?;
    let mut seen: Vec<(String, String)> = vec![(browser.address().await?, browser.evaluate(MAIN).await?)];
    let steps = [
        ("#sort-axis", "sort=axis"),
        ("#sort-axis", "sort=-axis"),
        (".chip a", "sort=-axis"),
        ("#next-page", "cursor="),
    ];
    for (selector, part) in steps {
        let previous = seen.last().context("no page")?.0.clone();
        browser.click(selector).await?;
        let previous_text = serde_json::to_string(&previous)?;
        browser.wait_for(&format!("location.pathname + location.search !== {previous_text} && !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')")).await?;
        let address = browser.address().await?;
        ensure!(
            address.contains(part) && address != previous,
            "a click on {selector} led from {previous} to {address}"
        );
        let back: String = browser
            .evaluate("new URL(document.querySelector('.foot a[href*=theme]').href).searchParams.get('back')")
            .await?;
        ensure!(back == address, "at {address} the theme leads back to {back}");
        let shown: String = browser.evaluate(MAIN).await?;
        browser.reload().await?;
        ensure!(browser.evaluate::<String>(MAIN).await? == shown, "{address} differs after a reload");
        seen.push((address, shown));
    }
    // The last one is shown now.
    seen.pop();
    for (address, shown) in seen.into_iter().rev() {
        browser.back().await?;
        let shown = serde_json::to_string(&shown)?;
        browser
            .wait_for(&format!("{MAIN} === {shown} && document.readyState === 'complete'"))
            .await
            .with_context(|| format!("back to {address}"))?;
    }
    Ok(())
}
