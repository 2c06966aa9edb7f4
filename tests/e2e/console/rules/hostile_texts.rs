//! Transcripts are untrusted text. They are shown as sent, never run, cannot reverse the text around them, and fit
//! the page.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::browser::{Browser, Viewer};
use crate::console::hostile::{self, SCRIPT};
use crate::console::visit::Visit;
use crate::harness::{conversation, text, until};

/// Maximum size of a page with a transcript, in bytes on the wire.
const MAX_BYTES: u64 = 100_000;

/// Lists the effects of injected markup and scripts.
const HARM: &str = r"JSON.stringify({
  ran: 'pwned' in window,
  made: [...document.querySelectorAll('main script, main style, main base, main meta, main img, main marquee, main plaintext, main i, main u, main .said svg, main [onerror], main [onload], main [hx-get], main a[href^=http], main a[href^=javascript], main form[action^=http]')].map((it) => it.outerHTML.slice(0, 200)),
  titles: document.querySelectorAll('title').length - document.querySelectorAll('svg title').length,
  mains: document.querySelectorAll('#main').length,
})";

const NO_HARM: &str = r#"{"ran":false,"made":[],"titles":1,"mains":1}"#;

pub async fn run(visit: &mut Visit) -> Result<()> {
    let agent = json!({"external_id": "hostile-bot", "name": format!("Bot {SCRIPT} {}", "n".repeat(150))});
    visit.api.post("/v1/agents", &agent).await?.expect(201)?;
    let webhook = subscribe(visit).await.context("a webhook that gets evaluations")?;
    let id = visit.import(&hostile::conversation("hostile-bot")).await?;
    let delivery = delivery_of(visit, &webhook, &id).await?;
    let key = ["--name", "<script>window.pwned=1</script>"];
    visit.stack.create_key(visit.stack.organization(), &key).await?;
    let search = "%3Cscript%3Ewindow.pwned%3D1%3C%2Fscript%3E";
    let word = "y".repeat(700);
    let pages = [
        format!("/console/conversations/{id}"),
        format!("/console/conversations/{id}/messages/3"),
        "/console/conversations?column=time&column=subject&column=tool&column=source&column=flags".to_owned(),
        format!("/console/conversations?subject={search}&source={search}"),
        format!("/console/conversations?axis_min={search}&nosuch={search}&sort={search}"),
        format!("/console/exports?subject={search}"),
        format!("/console/exports?external_id={word}&source={word}"),
        format!("/console/conversations?external_id={word}&source={word}"),
        format!("/console/conversations/{id}?source={word}"),
        "/console?period=all&by=agent".to_owned(),
        format!("/console?from={search}&to=%22%3E{search}"),
        "/console/agents".to_owned(),
        "/console/keys".to_owned(),
        "/console/imports".to_owned(),
        "/console/webhooks".to_owned(),
        format!("/console{webhook}"),
        format!("/console{delivery}"),
        format!("/console/{search}"),
    ];
    for page in &pages {
        check_page(&mut visit.browser, page).await.with_context(|| page.clone())?;
    }
    visit.reset(&Viewer::default()).await?;
    let browser = &mut visit.browser;
    check_webhook(browser, &delivery).await.context("texts of the webhook")?;
    visit.api.delete(&format!("/v1{webhook}")).await?.expect_status(204)?;
    check_transcript(browser, &id).await
}

/// Creates a webhook with a hostile address and description, and waits until it gets evaluations: scoring-worker polls who does.
/// Returns its path.
async fn subscribe(visit: &Visit) -> Result<String> {
    let url = format!("http://127.0.0.1:1024/hook?\"'>{}&{}", SCRIPT.replace(' ', ""), "y".repeat(700));
    let description = format!("{SCRIPT}</title>\u{202e}gnirts esrever\u{202c} {}", "long".repeat(100));
    let webhook = json!({"url": url, "description": description, "events": ["evaluation.completed"]});
    let created = visit.api.post("/v1/webhooks", &webhook).await?.expect(201)?;
    let path = format!("/webhooks/{}", text(&created, "id")?);
    let mut probe = 0;
    until("the first message of an evaluation", async || {
        probe += 1;
        visit.import(&conversation(&format!("probe-{probe}"))).await?;
        Ok((!deliveries(visit, &path).await?.is_empty()).then_some(()))
    })
    .await?;
    Ok(path)
}

/// The ids of the deliveries of a webhook, newest first.
async fn deliveries(visit: &Visit, webhook: &str) -> Result<Vec<String>> {
    let page = visit.api.get(&format!("/v1{webhook}/deliveries")).await?.expect(200)?;
    let ids = page["data"].as_array().context("no data")?.iter().filter_map(|one| one["id"].as_str());
    Ok(ids.map(str::to_owned).collect())
}

/// Waits for the delivery about a ticket; returns its path.
async fn delivery_of(visit: &Visit, webhook: &str, ticket_id: &str) -> Result<String> {
    until("the message of the hostile conversation", async || {
        for id in deliveries(visit, webhook).await? {
            let path = format!("{webhook}/deliveries/{id}");
            let delivery = visit.api.get(&format!("/v1{path}")).await?.expect(200)?;
            if delivery["payload"]["data"]["ticket_id"] == ticket_id {
                return Ok(Some(path));
            }
        }
        Ok(None)
    })
    .await
}

/// The hostile texts are shown: pages without them would do no harm, either.
async fn check_webhook(browser: &mut Browser, delivery: &str) -> Result<()> {
    browser.open("/console/webhooks").await?;
    let description = browser.text("tbody tr:first-child .why").await?;
    ensure!(description.contains(SCRIPT) && description.contains("RLO"), "{description}");
    browser.open(&format!("/console{delivery}")).await?;
    let payload = browser.text("#h-p ~ pre").await?;
    ensure!(payload.contains(SCRIPT), "{payload}");
    Ok(())
}

async fn check_page(browser: &mut Browser, page: &str) -> Result<()> {
    browser.open(page).await?;
    let harm: String = browser.evaluate(HARM).await?;
    ensure!(harm == NO_HARM, "{harm}");
    for width in [360, 1440] {
        browser.emulate(&Viewer { width, ..Viewer::default() }).await?;
        let needed = browser.needed_width().await?;
        ensure!(needed <= width, "it needs {needed} px of {width}");
    }
    let address = browser.address().await?;
    ensure!(address.starts_with("/console"), "it led to {address}");
    browser.expect_only_page_errors("status of 4").await
}

/// Texts are shown as sent, and bidirectional or invisible characters by their names.
async fn check_transcript(browser: &mut Browser, id: &str) -> Result<()> {
    browser.open(&format!("/console/conversations/{id}")).await?;
    let shown = browser.text(".transcript").await?;
    for text in
        [SCRIPT, "<mark>a forged quote</mark>", "{{ 7 * 7 }}", "onerror=\"window.pwned = 1\"", "مرحبا", "👩‍👩‍👧‍👦"]
    {
        ensure!(shown.contains(text), "{text} is not shown: {shown:.3000}");
    }
    for name in ["RLO", "PDF", "LRI", "PDI", "ZWSP", "BOM"] {
        ensure!(shown.contains(name), "{name} is not shown by name");
    }
    for control in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'] {
        ensure!(!shown.contains(control), "U+{:04X} is on the page", u32::from(control));
        let title: String = browser.evaluate("document.title").await?;
        ensure!(!title.contains(control), "U+{:04X} is in the title", u32::from(control));
    }
    // Only real quotes have an id, and each id is on the page once.
    let ids: Vec<String> = browser.all("[id]", "it.id").await?;
    let distinct: BTreeSet<&String> = ids.iter().collect();
    ensure!(distinct.len() == ids.len(), "an id is there twice: {ids:?}");
    let hrefs: Vec<String> = browser.all(".ref", "it.getAttribute('href')").await?;
    ensure!(hrefs.iter().all(|href| href.starts_with('#')), "{hrefs:?}");
    Ok(())
}

/// 50 messages of 80 kB: the page stays small, says what it left out, and each message can be read whole.
pub async fn large(visit: &mut Visit) -> Result<()> {
    let id = visit.import(&hostile::large("support-bot")).await?;
    for width in [1440, 360] {
        visit.reset(&Viewer { width, ..Viewer::default() }).await?;
        let browser = &mut visit.browser;
        browser.open(&format!("/console/conversations/{id}")).await?;
        let bytes = browser.loaded_bytes().await?;
        ensure!(bytes <= MAX_BYTES, "{bytes} bytes");
        let messages: Vec<String> =
            browser.all(".transcript > li", "it.querySelector('.cut')?.textContent ?? ''").await?;
        ensure!(messages.len() == 50, "{} messages", messages.len());
        ensure!(messages.iter().all(|text| text.ends_with("characters more")), "{messages:?}");
        let needed = browser.needed_width().await?;
        ensure!(needed <= width, "it needs {needed} px");
        browser.follow(".transcript li:nth-child(2) .cut").await?;
        // A part has at most 60,000 bytes of text. White space around the parts is not counted, so 79,000 of 80,000 are enough.
        let mut characters = 0;
        loop {
            // Without the numbers of quotes, which follow word joiners.
            let own_text = "(() => { const own = it.cloneNode(true); own.querySelectorAll('.ref').forEach((ref) => ref.remove()); return own.textContent.replaceAll('\\u2060', '').trim().length })()";
            let length: Vec<usize> = browser.all(".said", own_text).await?;
            ensure!(length.len() == 1 && length[0] <= 60_000, "{length:?}");
            characters += length[0];
            let needed = browser.needed_width().await?;
            ensure!(needed <= width, "the message needs {needed} px");
            if !browser.has(".pager [rel=next]").await? {
                break;
            }
            browser.follow(".pager [rel=next]").await?;
        }
        ensure!(characters >= 79_000, "all parts have {characters} characters");
    }
    Ok(())
}
