//! A standalone with conversations and a browser, in which the rules are checked.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use super::corpus;
use crate::browser::{self, Browser, Viewer};
use crate::harness::{Api, Cases, Kind, PrivateStack, Stack, block_on, text};

/// Name of a rule, and the function that checks it.
pub type Rule = (&'static str, RuleFunction);

type RuleFunction = for<'v> fn(&'v mut Visit) -> Pin<Box<dyn Future<Output = Result<()>> + 'v>>;

/// The organization with the conversations.
const ORGANIZATION: &str = "console";

/// Files of exports that have expired are removed at once.
const MAINTENANCE: (&str, &str) = ("ASSAY_EXPORT_WORKER__MAINTENANCE_INTERVAL_SECONDS", "1");

/// True once a partial update has filtered the list by disputed charges.
pub const IS_FILTERED: &str =
    "location.search.includes('charge=disputed') && document.querySelector('#status').textContent !== ''";

/// A page. Addresses contain ids, so the list of pages is created once per visit.
#[derive(Clone)]
pub struct Page {
    pub name: &'static str,
    pub address: String,
}

/// The fixture of a rule: a new signed-in tab, conversations, a client of the API.
pub struct Visit {
    pub browser: Browser,
    /// The stack as [`ORGANIZATION`] sees it.
    pub stack: Stack,
    pub api: Api,
    /// The stack as the organization `default` sees it, without conversations, as after the first start.
    pub default_organization: Stack,
    /// Empty until [`super::pages::pages`] was called.
    pub pages: Vec<Page>,
    session: Value,
}

impl Visit {
    /// Replaces the tab by a new one with these settings, signed in.
    pub async fn reset(&mut self, viewer: &Viewer) -> Result<()> {
        self.browser.reset(viewer).await?;
        self.browser.set_cookies(&self.session).await
    }

    /// Creates a sign-in link.
    pub async fn sign_in_link(&self) -> Result<String> {
        let (organization, url) = (self.stack.organization(), self.stack.base_url());
        let link = ["link", "--organization", organization, "--url", url];
        let output = self.stack.operate("console", &link).await?;
        ensure!(output.status.success(), "assay console link: {output:?}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Imports a conversation and waits until the lists have it; returns its ticket id.
    pub async fn import(&self, conversation: &Value) -> Result<String> {
        let id = self.api.import(conversation).await?;
        self.api.evaluation(&id).await?;
        self.api.await_listed(("external_id", &text(conversation, "ticket_id")?), 1).await?;
        Ok(id)
    }
}

/// Checks the rules one after the other, and reports failures by name. `E2E_SCENARIOS` selects rules by a part of their name.
#[allow(clippy::disallowed_methods, reason = "a setting of the test, not of the product")]
pub fn run_rules(rules: &[Rule]) -> Result<()> {
    let wanted = std::env::var("E2E_SCENARIOS").unwrap_or_default();
    let rules: Vec<&Rule> = rules.iter().filter(|(name, _)| name.contains(&wanted)).collect();
    ensure!(!rules.is_empty(), "no rule is named like {wanted}");
    let Some(program) = browser::program()? else { return Ok(()) };
    let mut stack = PrivateStack::prepare(Kind::Standalone, "console")?;
    let outcome = block_on(async {
        stack.start_with(&[MAINTENANCE]).await?;
        let mut visit = start_visit(&stack, &program).await?;
        let mut cases = Cases::default();
        for (name, rule) in rules {
            let began = Instant::now();
            let outcome = check_rule(&mut visit, *rule).await;
            let word = if outcome.is_ok() { "passed" } else { "FAILED" };
            writeln!(std::io::stderr(), "{word} {name} in {:.1} s", began.elapsed().as_secs_f32())?;
            if outcome.is_err() {
                keep_screenshot(&mut visit, &stack.log(name)).await;
            }
            cases.check(name, outcome);
        }
        let closed = visit.browser.close().await;
        cases.finish()?;
        closed
    });
    if outcome.is_err() {
        stack.show_logs();
    }
    outcome
}

async fn start_visit(stack: &PrivateStack, program: &Path) -> Result<Visit> {
    let shared = stack.share(ORGANIZATION).await?;
    let (profile, log) = (shared.folder().join("browser"), stack.log("browser"));
    let browser = Browser::start(program, &profile, &log, shared.base_url()).await?;
    let api = shared.api()?;
    let mut visit = Visit {
        browser,
        api,
        stack: shared,
        default_organization: (**stack).clone(),
        pages: Vec::new(),
        session: Value::Null,
    };
    let link = visit.sign_in_link().await?;
    visit.browser.open(&link).await?;
    visit.session = visit.browser.cookies().await?;
    import_corpus(&visit.api).await?;
    Ok(visit)
}

async fn import_corpus(api: &Api) -> Result<()> {
    for agent in corpus::agents() {
        api.register(agent).await?;
    }
    let conversations = corpus::conversations()?;
    for conversation in &conversations {
        api.import(conversation).await?;
    }
    api.await_listed(("limit", "1"), conversations.len()).await
}

async fn check_rule(visit: &mut Visit, rule: RuleFunction) -> Result<()> {
    visit.reset(&Viewer::default()).await?;
    rule(visit).await?;
    let page_errors = visit.browser.take_page_errors().await?;
    ensure!(page_errors.is_empty(), "page errors: {}", page_errors.join("\n"));
    Ok(())
}

/// Writes a screenshot of a failed rule next to the logs; best effort.
async fn keep_screenshot(visit: &mut Visit, log: &Path) {
    if let Ok(screenshot) = visit.browser.screenshot().await {
        let _ = fs::write(log.with_extension("png"), screenshot);
    }
}

/// The folder of `make screenshots`.
pub fn screenshots_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../screenshots")
}
