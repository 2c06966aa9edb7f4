//! The DevTools protocol of Chromium on two pipes: messages of JSON, each ended by a zero byte. Pipes need no driver, no port
//! and no WebSocket.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout_at};

/// How long the browser may take to answer.
const DEADLINE: Duration = Duration::from_secs(60);

/// The browser reads commands from descriptor 3 and writes answers and events to descriptor 4.
const MOVE_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >&2"#;

/// A browser process and its pipes.
pub struct Connection {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Part of a message, kept when a wait ends before the message does.
    unread: Vec<u8>,
    last_id: u64,
    /// Events that arrived while an answer was awaited.
    events: VecDeque<Value>,
}

impl Connection {
    /// Starts the browser without a window, with its profile in `profile` and its output in the file `log`.
    pub fn start(program: &Path, profile: &Path, log: &Path) -> Result<Self> {
        let mut process = Command::new("sh")
            .args(["-c", MOVE_PIPES, "sh"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(log)?)
            .kill_on_drop(true)
            .spawn()
            .context("the browser does not start")?;
        let input = process.stdin.take().context("no pipe to the browser")?;
        let output = BufReader::new(process.stdout.take().context("no pipe from the browser")?);
        Ok(Self { process, input, output, unread: Vec::new(), last_id: 0, events: VecDeque::new() })
    }

    /// Calls a method, of the browser or of a session; an error when the browser refuses.
    pub async fn call(&mut self, session: Option<&str>, method: &str, parameters: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        let deadline = Instant::now() + DEADLINE;
        timeout_at(deadline, self.input.write_all(&bytes)).await.with_context(|| method.to_owned())??;
        loop {
            let message = self.receive(deadline).await?;
            let mut message = message.with_context(|| format!("the browser does not answer {method}"))?;
            if message["id"] != id {
                self.keep(message);
                continue;
            }
            if let Some(text) = message["error"]["message"].as_str() {
                bail!("{method}: {text}");
            }
            return Ok(message["result"].take());
        }
    }

    /// The next event, if one arrives before the deadline.
    pub async fn event(&mut self, deadline: Instant) -> Result<Option<Value>> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        self.receive(deadline).await
    }

    /// The next event among those that have arrived.
    pub fn arrived(&mut self) -> Option<Value> {
        self.events.pop_front()
    }

    pub async fn close(mut self) -> Result<()> {
        self.call(None, "Browser.close", json!({})).await?;
        tokio::time::timeout(DEADLINE, self.process.wait()).await.context("the browser does not end")??;
        Ok(())
    }

    fn keep(&mut self, message: Value) {
        if message["method"].is_string() {
            self.events.push_back(message);
        }
    }

    async fn receive(&mut self, deadline: Instant) -> Result<Option<Value>> {
        let read = timeout_at(deadline, self.output.read_until(0, &mut self.unread)).await;
        let Ok(read) = read else { return Ok(None) };
        ensure!(read? > 0, "the browser has ended");
        self.unread.pop();
        let message = serde_json::from_slice(&self.unread)?;
        self.unread.clear();
        Ok(Some(message))
    }
}
