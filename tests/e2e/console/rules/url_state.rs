//! The URL is the state of a page; reload, back and share show the same.

use anyhow::{Context, Result, ensure};

use crate::browser::Viewer;
use crate::console::visit::Visit;

const MAIN: &str = "document.querySelector('main').innerText";

const ADDRESSES: [&str; 4] = [
    "/console?period=all&by=language&of=resolution_accuracy",
    "/console/conversations?charge=disputed&charge=review&sort=axis&column=subject&column=axis&column=language",
    "/console/conversations?subject=order&band=good&band=mixed&sort=-confidence",
    "/console/exports?charge=review&axis_min=2.5",
];

pub async fn run(visit: &mut Visit) -> Result<()> {
    for address in ADDRESSES {
        let browser = &mut visit.browser;
        browser.open(address).await?;
        let shown: String = browser.evaluate(MAIN).await?;
        browser.reload().await?;
        ensure!(browser.evaluate::<String>(MAIN).await? == shown, "{address} is another page after a reload");
        visit.reset(&Viewer::default()).await?;
        visit.browser.open(address).await?;
        ensure!(
            visit.browser.evaluate::<String>(MAIN).await? == shown,
            "{address} is another page in another browser"
        );
    }
    list_changes(visit).await
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
