//! Keyboard shortcuts, which have no effect while the user types.

use anyhow::{Context, Result, ensure};

use crate::browser::Browser;
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
    let id = first_id(visit, "charge=disputed").await?;
    let browser = &mut visit.browser;
    in_the_list(browser).await.context("in the list")?;
    open_with_quotes(browser, &id).await?;
    in_a_conversation(browser).await.context("in a conversation")?;
    help(browser).await.context("help")?;
    while_typing(browser).await.context("while typing")
}

async fn in_the_list(browser: &mut Browser) -> Result<()> {
    browser.open("/console/conversations?charge=disputed").await?;
    for (key, row) in [("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0)] {
        browser.press(key).await?;
        let found: i64 = browser.evaluate(ROW).await?;
        ensure!(found == row, "after {key} row {found} instead of {row}");
    }
    browser.press("j").await?;
    let second: Vec<String> = browser.all("#rows tbody tr:nth-child(2)", "it.id.replace('row-', '')").await?;
    browser.press_and_follow("Enter").await?;
    let address = browser.address().await?;
    ensure!(address.contains(&second[0]) && address.contains("charge=disputed"), "{address}");
    browser.press_and_follow("k").await?;
    ensure!(browser.text("#position").await?.starts_with("1 of"), "{}", browser.text("#position").await?);
    browser.press_and_follow("j").await?;
    browser.expect_address(&address).await?;
    // The key leads to the search field of the same list.
    browser.press_and_follow("/").await?;
    ensure!(browser.evaluate::<String>("document.activeElement.id").await? == "search", "no search");
    let address = browser.address().await?;
    ensure!(address.starts_with("/console/conversations?charge=disputed"), "{address}");
    Ok(())
}

async fn in_a_conversation(browser: &mut Browser) -> Result<()> {
    let quotes: Vec<String> = browser.all(".transcript .ref[id]", "it.id").await?;
    ensure!(quotes.len() >= 2, "the conversation has {} quotes", quotes.len());
    for quote in quotes.iter().chain([&quotes[0]]) {
        browser.press("e").await?;
        let at: String = browser.evaluate(QUOTE).await?;
        ensure!(at == *quote, "at {at} instead of {quote}");
        ensure!(browser.is_in_sight("document.activeElement").await?, "{quote} is not on the screen");
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

/// Opens a conversation with at least two quotes: this one, or one that follows it.
async fn open_with_quotes(browser: &mut Browser, id: &str) -> Result<()> {
    browser.open(&format!("/console/conversations/{id}?charge=disputed&charge=review")).await?;
    while browser.all::<String>(".transcript .ref[id]", "it.id").await?.len() < 2 {
        browser.follow("#next").await?;
    }
    let path: String = browser.evaluate("location.pathname").await?;
    browser.open(&path).await
}

async fn help(browser: &mut Browser) -> Result<()> {
    browser.open("/console/conversations").await?;
    open_help(browser).await?;
    let text = browser.text("dialog#help").await?;
    for key in ["j", "k", "e", "Enter", "/", "?"] {
        ensure!(text.split_whitespace().any(|word| word == key), "the help does not name {key}: {text}");
    }
    close_help(browser).await
}

async fn open_help(browser: &mut Browser) -> Result<()> {
    browser.press("?").await?;
    browser.wait_for("document.querySelector('dialog#help')?.open === true").await
}

async fn close_help(browser: &mut Browser) -> Result<()> {
    browser.press("Escape").await?;
    browser.wait_for("document.querySelector('dialog#help').open === false").await
}

/// No key fires in a field of any kind.
async fn while_typing(browser: &mut Browser) -> Result<()> {
    for (page, field, holds_text) in FIELDS {
        type_into(browser, page, field, holds_text).await.with_context(|| format!("{page} {field}"))?;
    }
    sign_in_field(browser).await.context("sign-in")
}

/// Types into a field. The help was open before, so that it would open again at once: a key cannot fire unnoticed.
async fn type_into(browser: &mut Browser, page: &str, field: &str, holds_text: bool) -> Result<()> {
    browser.open(page).await?;
    open_help(browser).await?;
    close_help(browser).await?;
    if field.starts_with("#filter-form") {
        browser.click("#filters-button").await?;
    }
    if holds_text {
        fill_and_compare(browser, field).await?;
    } else {
        // A click would change the value, or open a list.
        let selector = serde_json::to_string(field)?;
        browser.run(&format!("document.querySelector({selector}).focus()")).await?;
        browser.type_text(TYPED).await?;
    }
    expect_no_key_fired(browser, page, field).await
}

/// The field of a key: a sign-in address that is not valid shows it, also to a person who is signed in.
async fn sign_in_field(browser: &mut Browser) -> Result<()> {
    const PAGE: &str = "/console/sign-in?token=none";
    browser.open(PAGE).await?;
    fill_and_compare(browser, "#key").await?;
    expect_no_key_fired(browser, PAGE, "#key").await?;
    browser.expect_only_page_errors("status of 403").await
}

async fn fill_and_compare(browser: &mut Browser, field: &str) -> Result<()> {
    browser.fill(field, TYPED).await?;
    let value: Vec<String> = browser.all(field, "it.value").await?;
    ensure!(value == [TYPED], "{value:?}");
    Ok(())
}

async fn expect_no_key_fired(browser: &mut Browser, page: &str, field: &str) -> Result<()> {
    let has_focus: Vec<bool> = browser.all(field, "it === document.activeElement").await?;
    ensure!(has_focus == [true], "the focus has left the field");
    ensure!(!browser.has("dialog[open]").await?, "the help is open");
    browser.expect_address(page).await
}
