//! Keyboard shortcuts, which have no effect while the user types.

use anyhow::{Context, Result, ensure};

use crate::console::pages::first_id;
use crate::console::visit::Visit;

/// Index of the row with the focus.
const ROW: &str = "[...document.querySelectorAll('#rows tbody tr')].findIndex((row) => row.contains(document.activeElement))";
/// Id of the quote with the focus.
const QUOTE: &str = "document.activeElement.matches('.transcript .ref') ? document.activeElement.id : ''";

/// The characters of all shortcuts.
const TYPED: &str = "jk/?eE";
/// A page, one of its fields, and whether the field holds any text. A key may change the value of one that does not.
const FIELDS: [(&str, &str, bool); 7] = [
    ("/console/conversations", "#search", true),
    ("/console/conversations", "#filter-form [name=subject]", true),
    ("/console/conversations", "#filter-form [type=checkbox][name=charge][value=disputed]", false),
    ("/console", "select#beside", false),
    ("/console", "#from[type=date]", false),
    ("/console/keys", "#name", true),
    ("/console/webhooks", "#url", true),
];

pub async fn run(visit: &mut Visit) -> Result<()> {
    in_the_list(visit).await.context("in the list")?;
    in_a_conversation(visit).await.context("in a conversation")?;
    help(visit).await.context("help")?;
    while_typing(visit).await.context("while typing")
}

async fn in_the_list(visit: &mut Visit) -> Result<()> {
    let browser = &mut visit.browser;
    browser.open("/console/conversations?charge=disputed").await?;
    for (key, row) in [("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)] {
        browser.press(key).await?;
        ensure!(
            browser.evaluate::<i64>(ROW).await? == row,
            "after {key} row {} instead of {row}",
            browser.evaluate::<i64>(ROW).await?
        );
    }
    browser.press("j").await?;
    let second: Vec<String> = browser.all("#rows tbody tr:nth-child(2)", "it.id.replace('row-', '')").await?;
    browser.press_and_follow("Enter").await?;
    let address = browser.address().await?;
    ensure!(address.contains(&second[0]) && address.contains("charge=disputed"), "{address}");
    browser.press_and_follow("k").await?;
    ensure!(browser.text("#position").await?.starts_with("1 of"), "{}", browser.text("#position").await?);
    browser.press_and_follow("j").await?;
    ensure!(browser.address().await? == address, "{}", browser.address().await?);
    // The key leads to the search field of the same list.
    browser.press_and_follow("/").await?;
    ensure!(browser.evaluate::<String>("document.activeElement.id").await? == "search", "no search");
    let address = browser.address().await?;
    ensure!(address.starts_with("/console/conversations?charge=disputed"), "{address}");
    Ok(())
}

async fn in_a_conversation(visit: &mut Visit) -> Result<()> {
    let id = with_quotes(visit).await?;
    let browser = &mut visit.browser;
    browser.open(&format!("/console/conversations/{id}")).await?;
    let quotes: Vec<String> = browser.all(".transcript .ref[id]", "it.id").await?;
    ensure!(quotes.len() >= 2, "{id} has {} quotes", quotes.len());
    for quote in quotes.iter().chain([&quotes[0]]) {
        browser.press("e").await?;
        let at: String = browser.evaluate(QUOTE).await?;
        ensure!(at == *quote, "at {at} instead of {quote}");
        let seen: bool = browser
            .evaluate("(() => { const box = document.activeElement.getBoundingClientRect(); return box.top >= 0 && box.bottom <= innerHeight })()")
            .await?;
        ensure!(seen, "{quote} is not on the screen");
    }
    browser.press("E").await?;
    let at: String = browser.evaluate(QUOTE).await?;
    ensure!(Some(&at) == quotes.last(), "backwards: {at}");
    // The quote leads to its reason, and the reason back to the quote.
    browser.press("Enter").await?;
    let target = browser.address().await?;
    let reason = target.split_once('#').context("no fragment")?.1.to_owned();
    let back: Vec<String> = browser.all(&format!("[id='{reason}'] .ref"), "it.getAttribute('href')").await?;
    ensure!(back.contains(&format!("#{at}")), "#{reason} leads to {back:?}, not to {at}");
    Ok(())
}

/// Finds a conversation with at least two quotes.
async fn with_quotes(visit: &mut Visit) -> Result<String> {
    let id = first_id(visit, "charge=disputed").await?;
    visit.browser.open(&format!("/console/conversations/{id}?charge=disputed&charge=review")).await?;
    while visit.browser.all::<String>(".transcript .ref[id]", "it.id").await?.len() < 2 {
        visit.browser.follow("#next").await?;
    }
    let path: String = visit.browser.evaluate("location.pathname").await?;
    Ok(path.rsplit('/').next().unwrap_or_default().to_owned())
}

async fn help(visit: &mut Visit) -> Result<()> {
    visit.browser.open("/console/conversations").await?;
    open_help(visit).await?;
    let text = visit.browser.text("dialog#help").await?;
    for key in ["j", "k", "e", "Enter", "/", "?"] {
        ensure!(text.split_whitespace().any(|word| word == key), "the help does not name {key}: {text}");
    }
    close_help(visit).await
}

async fn open_help(visit: &mut Visit) -> Result<()> {
    visit.browser.press("?").await?;
    visit.browser.wait_for("document.querySelector('dialog#help')?.open === true").await
}

async fn close_help(visit: &mut Visit) -> Result<()> {
    visit.browser.press("Escape").await?;
    visit.browser.wait_for("document.querySelector('dialog#help').open === false").await
}

/// No key fires in a field of any kind.
async fn while_typing(visit: &mut Visit) -> Result<()> {
    for (page, field, holds_text) in FIELDS {
        type_into(visit, page, field, holds_text).await.with_context(|| format!("{page} {field}"))?;
    }
    sign_in_field(visit).await.context("sign-in")
}

/// Types into a field. The help was open before, so that it would open again at once: a key cannot fire unnoticed.
async fn type_into(visit: &mut Visit, page: &str, field: &str, holds_text: bool) -> Result<()> {
    visit.browser.open(page).await?;
    open_help(visit).await?;
    close_help(visit).await?;
    let browser = &mut visit.browser;
    if field.starts_with("#filter-form") {
        browser.click("#filters-button").await?;
    }
    if holds_text {
        browser.click(field).await?;
        browser.type_text(TYPED).await?;
        let value: Vec<String> = browser.all(field, "it.value").await?;
        ensure!(value == [TYPED], "{value:?}");
    } else {
        // A click would change the value, or open a list.
        let selector = serde_json::to_string(field)?;
        let focus = format!("document.querySelector({selector}).focus()");
        browser.run(&focus).await?;
        browser.type_text(TYPED).await?;
    }
    expect_no_key_fired(visit, page, field).await
}

/// The field of a key: a sign-in address that is not valid shows it, also to a person who is signed in.
async fn sign_in_field(visit: &mut Visit) -> Result<()> {
    const PAGE: &str = "/console/sign-in?token=none";
    let browser = &mut visit.browser;
    browser.open(PAGE).await?;
    browser.click("#key").await?;
    browser.type_text(TYPED).await?;
    let value: Vec<String> = browser.all("#key", "it.value").await?;
    ensure!(value == [TYPED], "{value:?}");
    expect_no_key_fired(visit, PAGE, "#key").await?;
    visit.browser.expect_only_page_errors("status of 403").await
}

async fn expect_no_key_fired(visit: &mut Visit, page: &str, field: &str) -> Result<()> {
    let browser = &mut visit.browser;
    let has_focus: Vec<bool> = browser.all(field, "it === document.activeElement").await?;
    ensure!(has_focus == [true], "the focus has left the field");
    ensure!(!browser.has("dialog[open]").await?, "the help is open");
    let address = browser.address().await?;
    ensure!(address == page, "a key led to {address}");
    Ok(())
}
