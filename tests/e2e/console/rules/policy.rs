//! A violation of the Content Security Policy fails every rule. This checks that the browser reports violations.

use anyhow::{Result, ensure};

use crate::console::visit::Visit;

/// JavaScript that violates the policy, and the violated directive.
const VIOLATIONS: [(&str, &str); 3] = [
    ("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">inline</p>')", "style-src"),
    (
        "(() => { const it = document.createElement('script'); it.textContent = 'window.ran = 1'; document.body.append(it) })()",
        "script-src",
    ),
    ("fetch('http://127.0.0.1:9/').catch(() => 0)", "connect-src"),
];

pub async fn run(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console").await?;
    ensure!(browser.take_page_errors().await?.is_empty(), "the page itself violates the policy");
    for (violation, directive) in VIOLATIONS {
        browser.run(violation).await?;
        let page_errors = browser.page_errors_until(directive).await?;
        ensure!(page_errors.iter().any(|text| text.contains(directive)), "{directive}: {page_errors:?}");
    }
    ensure!(!browser.evaluate::<bool>("'ran' in window").await?, "an inline script ran");
    Ok(())
}
