//! A browser, used as a person does: it opens addresses, clicks visible elements, presses keys, and records page errors.

mod browser_log;
mod connection;
mod expectations;
mod keys;
mod viewer;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::browser_log::BrowserLog;
use self::connection::Connection;
pub use self::viewer::Viewer;
use crate::harness::WAIT_LIMIT;

/// How often a page is asked about a condition.
const INTERVAL: Duration = Duration::from_millis(10);

/// Marks the current document: [`IS_LOADED`] is false until the next document has replaced it.
const MARK: &str = "window.isOfTheLastPage = true";
const IS_LOADED: &str = "!window.isOfTheLastPage && document.readyState === 'complete'";

/// The path of Chromium (Debian's name) or Google Chrome. Where there is none the caller skips its checks, but not on CI.
pub fn program() -> Result<Option<PathBuf>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find =
        |name| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    let found = ["chromium", "google-chrome", "google-chrome-stable"].into_iter().find_map(find);
    if found.is_none() {
        ensure!(std::env::var_os("CI").is_none(), "no browser: install Debian's package chromium");
        writeln!(std::io::stderr(), "skipped: no browser, install Debian's package chromium")?;
    }
    Ok(found)
}

/// A browser with one tab.
pub struct Browser {
    connection: Connection,
    session: String,
    context: Option<String>,
    base_url: String,
    downloads: PathBuf,
    log: BrowserLog,
}

impl Browser {
    /// Starts a browser for the pages of `base_url`; its files are in `folder`.
    pub async fn start(program: &Path, folder: &Path, log: &Path, base_url: &str) -> Result<Self> {
        let downloads = folder.join("downloads");
        std::fs::create_dir_all(&downloads)?;
        let connection = Connection::start(program, &folder.join("profile"), log)?;
        let mut browser = Self {
            connection,
            session: String::new(),
            context: None,
            base_url: base_url.to_owned(),
            downloads,
            log: BrowserLog::default(),
        };
        browser.reset(&Viewer::default()).await?;
        Ok(browser)
    }

    pub async fn close(self) -> Result<()> {
        self.connection.close().await
    }

    /// Replaces the tab by a new one, without cookies and with an empty cache.
    pub async fn reset(&mut self, viewer: &Viewer) -> Result<()> {
        let context = self.browser_call("Target.createBrowserContext", json!({})).await?;
        let context = context["browserContextId"].as_str().context("no context")?.to_owned();
        let target = json!({"url": "about:blank", "browserContextId": context});
        let target = self.browser_call("Target.createTarget", target).await?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = self.browser_call("Target.attachToTarget", attach).await?;
        self.session = session["sessionId"].as_str().context("no session")?.to_owned();
        if let Some(previous) = self.context.replace(context.clone()) {
            self.browser_call("Target.disposeBrowserContext", json!({"browserContextId": previous})).await?;
        }
        for domain in ["Page", "Runtime", "Network", "Log", "Audits"] {
            self.call(&format!("{domain}.enable"), json!({})).await?;
        }
        let behaviour = json!({
            "behavior": "allow", "browserContextId": context, "downloadPath": self.downloads, "eventsEnabled": true,
        });
        self.browser_call("Browser.setDownloadBehavior", behaviour).await?;
        self.read_events();
        self.log.page_errors.clear();
        self.emulate(viewer).await
    }

    /// Applies the settings of a viewer to the tab.
    pub async fn emulate(&mut self, viewer: &Viewer) -> Result<()> {
        for (method, parameters) in viewer.settings() {
            self.call(method, parameters).await?;
        }
        Ok(())
    }

    /// Opens an address; a path is one of the stack. Waits until the page is loaded.
    pub async fn open(&mut self, address: &str) -> Result<()> {
        let url = if address.starts_with("http") {
            address.to_owned()
        } else {
            format!("{}{address}", self.base_url)
        };
        self.run(MARK).await?;
        self.log.loaded_bytes = 0;
        let answer = self.call("Page.navigate", json!({"url": url})).await?;
        ensure!(answer["errorText"].is_null(), "{url}: {answer}");
        self.wait_for(IS_LOADED).await.with_context(|| url.clone())
    }

    pub async fn reload(&mut self) -> Result<()> {
        self.run(MARK).await?;
        self.log.loaded_bytes = 0;
        self.call("Page.reload", json!({})).await?;
        self.wait_for(IS_LOADED).await
    }

    pub async fn back(&mut self) -> Result<()> {
        let history = self.call("Page.getNavigationHistory", json!({})).await?;
        let current = history["currentIndex"].as_u64().context("no history")?;
        let before =
            current.checked_sub(1).and_then(|index| usize::try_from(index).ok()).context("no page before")?;
        let id = &history["entries"][before]["id"];
        self.call("Page.navigateToHistoryEntry", json!({"entryId": id})).await?;
        let url = serde_json::to_string(&history["entries"][before]["url"])?;
        self.wait_for(&format!("location.href === {url} && document.readyState === 'complete'")).await
    }

    /// Clicks on an element that leads to another page, and waits until that is loaded.
    pub async fn follow(&mut self, selector: &str) -> Result<()> {
        self.run(MARK).await?;
        self.log.loaded_bytes = 0;
        self.click(selector).await?;
        self.wait_for(IS_LOADED).await.with_context(|| format!("after a click on {selector}"))
    }

    /// Presses a key that leads to another page, and waits until that is loaded.
    pub async fn press_and_follow(&mut self, key: &str) -> Result<()> {
        self.run(MARK).await?;
        self.press(key).await?;
        self.wait_for(IS_LOADED).await.with_context(|| format!("after the key {key}"))
    }

    /// Clicks with the mouse in the middle of the first element of a selector; an error when it is not visible there.
    pub async fn click(&mut self, selector: &str) -> Result<()> {
        let (x, y) = self.clickable_point(selector).await?;
        for (kind, buttons) in [("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)] {
            let event = json!({
                "type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event).await?;
        }
        Ok(())
    }

    /// Moves the mouse to the middle of the first element of a selector.
    pub async fn point_at(&mut self, selector: &str) -> Result<()> {
        let (x, y) = self.clickable_point(selector).await?;
        self.call("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y})).await?;
        Ok(())
    }

    /// The point at which the first element of a selector can be clicked.
    async fn clickable_point(&mut self, selector: &str) -> Result<(f64, f64)> {
        let selector_text = serde_json::to_string(selector)?;
        let found: Value = self.evaluate(&format!("({CLICKABLE_POINT})({selector_text})")).await?;
        match (found["x"].as_f64(), found["y"].as_f64()) {
            (Some(x), Some(y)) => Ok((x, y)),
            _ => bail!("{selector}: {}", found["fault"].as_str().unwrap_or_default()),
        }
    }

    /// Presses a key: see [`keys::press_events`].
    pub async fn press(&mut self, key: &str) -> Result<()> {
        for event in keys::press_events(key)? {
            self.call("Input.dispatchKeyEvent", event).await?;
        }
        Ok(())
    }

    /// Types a text into the element with the focus.
    pub async fn type_text(&mut self, text: &str) -> Result<()> {
        for character in text.chars() {
            self.press(character.encode_utf8(&mut [0; 4])).await?;
        }
        Ok(())
    }

    /// Clicks on a field, and types a text into it.
    pub async fn fill(&mut self, selector: &str, text: &str) -> Result<()> {
        self.click(selector).await?;
        self.type_text(text).await
    }

    /// The value of an expression; of a promise, the value it resolves to.
    pub async fn evaluate<T: DeserializeOwned>(&mut self, expression: &str) -> Result<T> {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let mut answer = self.call("Runtime.evaluate", parameters).await?;
        if let Some(exception) = answer.get("exceptionDetails") {
            let text = exception["exception"]["description"].as_str().or(exception["text"].as_str());
            bail!("{}: {expression:.300}", text.unwrap_or_default());
        }
        serde_json::from_value(answer["result"]["value"].take())
            .with_context(|| format!("the value of {expression:.300}"))
    }

    /// Runs statements; their value is ignored.
    pub async fn run(&mut self, statements: &str) -> Result<()> {
        self.evaluate::<Value>(statements).await.map(|_| ())
    }

    /// The visible text of the first element of a selector.
    pub async fn text(&mut self, selector: &str) -> Result<String> {
        let selector = serde_json::to_string(selector)?;
        let text: Option<String> =
            self.evaluate(&format!("document.querySelector({selector})?.innerText ?? null")).await?;
        text.with_context(|| format!("the page has no {selector}"))
    }

    /// Whether the page has an element of the selector.
    pub async fn has(&mut self, selector: &str) -> Result<bool> {
        let selector = serde_json::to_string(selector)?;
        self.evaluate(&format!("document.querySelector({selector}) !== null")).await
    }

    /// The values of a JavaScript expression for all elements of a selector; `it` is the element.
    pub async fn all<T: DeserializeOwned>(&mut self, selector: &str, expression: &str) -> Result<Vec<T>> {
        let selector = serde_json::to_string(selector)?;
        self.evaluate(&format!("[...document.querySelectorAll({selector})].map((it) => ({expression}))"))
            .await
    }

    /// Path, query and fragment of the page.
    pub async fn address(&mut self) -> Result<String> {
        self.evaluate("location.pathname + location.search + location.hash").await
    }

    /// The width of the page's content, in CSS pixels.
    pub async fn needed_width(&mut self) -> Result<u32> {
        self.evaluate("document.documentElement.scrollWidth").await
    }

    /// Waits until an expression is true, also across page loads.
    pub async fn wait_for(&mut self, condition: &str) -> Result<()> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            // Between two pages the evaluation fails.
            let answer = self.evaluate::<Value>(condition).await;
            if matches!(answer, Ok(Value::Bool(true))) {
                return Ok(());
            }
            if Instant::now() > deadline {
                let address = self.address().await.unwrap_or_default();
                let last = answer.map_or_else(|error| format!("{error:#}"), |value| value.to_string());
                bail!("{address}: waited {} s for {condition}; last: {last}", WAIT_LIMIT.as_secs());
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }

    /// The cookies, in the form that [`Self::set_cookies`] takes.
    pub async fn cookies(&mut self) -> Result<Value> {
        Ok(self.call("Network.getCookies", json!({"urls": [self.base_url]})).await?["cookies"].take())
    }

    pub async fn set_cookies(&mut self, cookies: &Value) -> Result<()> {
        for cookie in cookies.as_array().into_iter().flatten() {
            let cookie = json!({
                "name": cookie["name"], "value": cookie["value"], "url": self.base_url,
                "httpOnly": cookie["httpOnly"], "sameSite": cookie["sameSite"],
            });
            self.call("Network.setCookie", cookie).await?;
        }
        Ok(())
    }

    /// The whole page as PNG.
    pub async fn screenshot(&mut self) -> Result<Vec<u8>> {
        let metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        let size = &metrics["cssContentSize"];
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let parameters = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let answer = self.call("Page.captureScreenshot", parameters).await?;
        Ok(STANDARD.decode(answer["data"].as_str().context("no screenshot")?)?)
    }

    /// Clicks on a link to a file, and returns the downloaded file.
    pub async fn download(&mut self, selector: &str) -> Result<Vec<u8>> {
        self.read_events();
        self.log.downloads.clear();
        self.click(selector).await?;
        self.downloaded().await
    }

    /// Waits for the end of a download, and returns the file.
    pub async fn downloaded(&mut self) -> Result<Vec<u8>> {
        let deadline = Instant::now() + WAIT_LIMIT;
        while self.log.downloads.is_empty() {
            let event = self.connection.event(deadline).await?.context("no file was downloaded")?;
            self.log.record(&event);
        }
        let path = self.log.downloads.remove(0);
        std::fs::read(&path).with_context(|| path.clone())
    }

    /// Bytes on the wire, headers included, of the page and its files; cached files are not counted.
    pub async fn loaded_bytes(&mut self) -> Result<u64> {
        self.read_pending_events().await?;
        Ok(self.log.loaded_bytes)
    }

    /// Page errors since the last call: violations of the Content Security Policy, script errors, failed loads, dialogs.
    pub async fn take_page_errors(&mut self) -> Result<Vec<String>> {
        self.read_pending_events().await?;
        Ok(std::mem::take(&mut self.log.page_errors))
    }

    /// Takes all page errors, each of which must contain this text.
    pub async fn expect_only_page_errors(&mut self, part: &str) -> Result<()> {
        let page_errors = self.take_page_errors().await?;
        ensure!(page_errors.iter().all(|text| text.contains(part)), "{page_errors:?}");
        Ok(())
    }

    /// Reads all events up to now: the browser answers a call after it has sent the earlier events.
    async fn read_pending_events(&mut self) -> Result<()> {
        self.call("Page.getNavigationHistory", json!({})).await?;
        self.read_events();
        Ok(())
    }

    /// Waits for a page error with this text, and takes all page errors.
    pub async fn page_errors_until(&mut self, part: &str) -> Result<Vec<String>> {
        let deadline = Instant::now() + WAIT_LIMIT;
        while !self.log.page_errors.iter().any(|text| text.contains(part)) {
            let Some(event) = self.connection.event(deadline).await? else { break };
            self.log.record(&event);
        }
        Ok(std::mem::take(&mut self.log.page_errors))
    }

    async fn browser_call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        self.connection.call(None, method, parameters).await
    }

    async fn call(&mut self, method: &str, parameters: Value) -> Result<Value> {
        let answer = self.connection.call(Some(&self.session), method, parameters).await;
        self.read_events();
        answer
    }

    fn read_events(&mut self) {
        while let Some(event) = self.connection.arrived() {
            self.log.record(&event);
        }
    }
}

/// Returns the point at which the first element of a selector can be clicked, or the reason why it cannot be.
const CLICKABLE_POINT: &str = r"(selector) => {
  const element = document.querySelector(selector);
  if (!element) return { fault: `the page has no such element: ${location.href}` };
  element.scrollIntoView({ block: 'center', inline: 'center', behavior: 'instant' });
  const box = [...element.getClientRects()].find((box) => box.width > 0 && box.height > 0);
  if (!box) return { fault: 'it is not visible' };
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const top = document.elementFromPoint(x, y);
  if (!top || !(element.contains(top) || top.contains(element))) {
    return { fault: `something lies over it: ${top?.outerHTML.slice(0, 200)}` };
  }
  return { x, y };
}";
