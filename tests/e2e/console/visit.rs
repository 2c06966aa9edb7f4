//! A standalone with conversations, a browser, and the rules that are tried in it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::corpus;
use crate::browser::{self, Browser, Viewer};
use crate::harness::{Api, Cases, Kind, PrivateStack, Stack, block_on, until};

/// Name of a rule, and what tries it.
pub type Rule = (&'static str, Try);

type Try = for<'v> fn(&'v mut Visit) -> Pin<Box<dyn Future<Output = Result<()>> + 'v>>;

/// The organization whose pages are looked at.
const ORGANIZATION: &str = "console";

/// A page; the addresses hold ids, so the list is made for a visit, once.
#[derive(Clone)]
pub struct Page {
    pub name: &'static str,
    pub address: String,
}

/// What every rule has: a signed-in tab of its own, conversations, a client of the API.
pub struct Visit {
    pub browser: Browser,
    /// Of the organization with the conversations.
    pub stack: Stack,
    pub api: Api,
    /// Of an organization that is new, as after the first start.
    pub new: Stack,
    /// Every page, once something asked for them.
    pub pages: Vec<Page>,
    session: Value,
}

impl Visit {
    /// An empty tab of this viewer, signed in.
    pub async fn renew(&mut self, viewer: &Viewer) -> Result<()> {
        self.browser.renew(viewer).await?;
        self.browser.set_cookies(&self.session).await
    }

    /// An address that signs in to the console once.
    pub async fn link(&self) -> Result<String> {
        let base = self.stack.base_url();
        let output = self
            .stack
            .registry_command(
                "console",
                &["link", "--organization", self.stack.organization(), "--url", base],
            )
            .await?;
        ensure!(output.status.success(), "assay console link: {output:?}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Imports a conversation and waits until the lists have it; returns its ticket id.
    pub async fn import(&self, conversation: &Value) -> Result<String> {
        let id = self.api.import(conversation).await?;
        self.api.evaluation(&id).await?;
        let name = conversation["ticket_id"].as_str().context("no ticket id")?;
        until(&format!("{name} in the list"), async || {
            let page = self.api.reply(
                self.api.request(reqwest::Method::GET, "/v1/evaluations").query(&[("external_id", name)]),
            );
            let page = page.await?.expect(200)?;
            Ok((page["total"]["count"] == 1).then_some(()))
        })
        .await?;
        Ok(id)
    }

    /// The largest width that something on the page needs, in CSS pixels.
    pub async fn needed_width(&mut self) -> Result<u32> {
        self.browser.evaluate("document.documentElement.scrollWidth").await
    }
}

/// Tries the rules one after the other, and reports the broken ones by name. `E2E_SCENARIOS` may name a part.
#[allow(clippy::disallowed_methods, reason = "a setting of the test, not of the product")]
pub fn run_rules(rules: &[Rule]) -> Result<()> {
    let wanted = std::env::var("E2E_SCENARIOS").unwrap_or_default();
    let rules: Vec<&Rule> = rules.iter().filter(|(name, _)| name.contains(&wanted)).collect();
    ensure!(!rules.is_empty(), "no rule is named like {wanted}");
    let Some(program) = browser::program() else {
        ensure!(std::env::var_os("CI").is_none(), "no browser: install Debian's package chromium");
        writeln!(std::io::stderr(), "skipped: no browser, install Debian's package chromium")?;
        return Ok(());
    };
    let mut stack = PrivateStack::prepare(Kind::Standalone, "console")?;
    let outcome = block_on(async {
        stack.start().await?;
        let mut visit = visit(&stack, &program).await?;
        let mut cases = Cases::default();
        for (name, rule) in rules {
            let began = Instant::now();
            let outcome = try_rule(&mut visit, *rule).await;
            let word = if outcome.is_ok() { "passed" } else { "FAILED" };
            writeln!(std::io::stderr(), "{word} {name} in {:.1} s", began.elapsed().as_secs_f32())?;
            if outcome.is_err() {
                keep_picture(&mut visit, &stack.log(name)).await;
            }
            cases.check(name, outcome);
        }
        visit.browser.close().await?;
        cases.finish()
    });
    if outcome.is_err() {
        stack.show_logs();
    }
    outcome
}

async fn visit(stack: &PrivateStack, program: &Path) -> Result<Visit> {
    let own = stack.share(ORGANIZATION).await?;
    let (profile, log) = (own.folder().join("browser"), stack.log("browser"));
    let browser = Browser::start(program, &profile, &log, own.base_url()).await?;
    let api = own.api()?;
    let mut visit =
        Visit { browser, api, stack: own, new: (**stack).clone(), pages: Vec::new(), session: Value::Null };
    let link = visit.link().await?;
    visit.browser.open(&link).await?;
    visit.session = visit.browser.cookies().await?;
    fill(&visit.api).await?;
    Ok(visit)
}

async fn fill(api: &Api) -> Result<()> {
    for agent in corpus::agents() {
        api.register(agent).await?;
    }
    let conversations = corpus::conversations()?;
    for conversation in &conversations {
        api.import(conversation).await?;
    }
    until("all conversations in the list", async || {
        let page = api.get("/v1/evaluations?limit=1").await?.expect(200)?;
        Ok((page["total"]["count"] == json!(conversations.len())).then_some(()))
    })
    .await
}

async fn try_rule(visit: &mut Visit, rule: Try) -> Result<()> {
    visit.renew(&Viewer::default()).await?;
    rule(visit).await?;
    let complaints = visit.browser.complaints().await?;
    ensure!(complaints.is_empty(), "the browser complains: {}", complaints.join("\n"));
    Ok(())
}

/// What the browser showed when a rule was broken, beside the logs; best effort.
async fn keep_picture(visit: &mut Visit, log: &Path) {
    if let Ok(picture) = visit.browser.picture().await {
        let _ = fs::write(log.with_extension("png"), picture);
    }
}

/// Where the pictures of `make screenshots` are.
pub fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("../screenshots")
}
