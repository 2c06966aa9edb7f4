//! The conversations that are imported, and the agents in them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::client::{Requests, write_request};

/// Real conversations, where available.
const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/load_5000.jsonl.gz");

/// Number of generated conversations.
const GENERATED: usize = 1_000;

/// Bodies of `POST /v1/assess`. Each is sent many times with different ticket ids.
pub struct Conversations {
    bodies: Vec<Body>,
    pub agents: BTreeSet<String>,
    pub are_real: bool,
}

/// A body split around the value of `ticket_id`.
struct Body {
    before: Vec<u8>,
    after: Vec<u8>,
    /// Its messages alone, as JSON.
    messages: String,
}

impl Conversations {
    /// Real conversations where available, else generated ones of the same shape.
    pub fn load() -> Result<Self> {
        let path = Path::new(REAL);
        let are_real = path.exists();
        let bodies: Vec<Value> = if are_real { read(path)? } else { (0..GENERATED).map(generate).collect() };
        ensure!(!bodies.is_empty(), "no conversations in {}", path.display());
        let agents = bodies.iter().flat_map(agents).collect();
        let bodies = bodies.into_iter().map(split).collect::<Result<_>>()?;
        Ok(Self { bodies, agents, are_real })
    }

    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Mean size of a body, in bytes.
    pub fn mean_bytes(&self) -> usize {
        let total: usize = self.bodies.iter().map(|body| body.before.len() + body.after.len()).sum();
        total / self.bodies.len()
    }

    /// Messages of `count` evenly spaced conversations, as JSON.
    pub fn sample_of_messages(&self, count: usize) -> impl Iterator<Item = &str> {
        let step = (self.bodies.len() / count).max(1);
        self.bodies.iter().step_by(step).take(count).map(|body| body.messages.as_str())
    }

    /// Imports at `path`; request N has the ticket id `PREFIX-N`.
    pub fn imports(
        self: &Arc<Self>,
        path: &'static str,
        prefix: &str,
        bearer: impl Fn() -> String + Send + Sync + 'static,
    ) -> Requests {
        let (this, prefix) = (Arc::clone(self), prefix.to_owned());
        Arc::new(move |number, buffer| {
            let body = &this.bodies[number as usize % this.bodies.len()];
            let id = format!("\"{prefix}-{number}\"");
            let parts: [&[u8]; 3] = [&body.before, id.as_bytes(), &body.after];
            write_request(buffer, "POST", path, &bearer(), Some(&parts));
        })
    }
}

fn read(path: &Path) -> Result<Vec<Value>> {
    let lines = BufReader::new(GzDecoder::new(File::open(path)?)).lines();
    lines.map(|line| serde_json::from_str(&line?).context("a conversation that is no JSON")).collect()
}

fn agents(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let authors = messages.map(|message| &message["author"]).filter(|author| author["type"] == "ai");
    authors.filter_map(|author| author["external_id"].as_str().map(str::to_owned)).collect()
}

fn split(mut body: Value) -> Result<Body> {
    const MARK: &str = "\u{1}";
    let messages = serde_json::to_string(&body["messages"])?;
    body["ticket_id"] = Value::from(MARK);
    let text = serde_json::to_string(&body)?;
    let mark = serde_json::to_string(MARK)?;
    let (before, after) = text.split_once(&mark).context("a conversation without its mark")?;
    Ok(Body { before: before.into(), after: after.into(), messages })
}

/// As long as the real ones: 17 messages and 5 kB on average, between 5 and 30 messages.
fn generate(number: usize) -> Value {
    const CUSTOMER: [&str; 4] = [
        "Hello, my order #{} has not arrived and the tracking page has not changed since Monday. What happened to it?",
        "I have tried that already, it still says that the payment for {} is pending. Can you look it up on your side?",
        "No, that is not what I asked for. Please send the refund for {} to the card that I paid with.",
        "Thank you, I can see it now. That was number {}, so everything is settled.",
    ];
    const AGENT: [&str; 4] = [
        "I am sorry about the delay. I have looked up order #{}: the carrier has it in the sorting centre, and it is expected the day after tomorrow. Would you like me to have it sent again?",
        "I understand. For {} I can see two attempts to pay, of which one was declined by the bank; nothing was charged twice.",
        "I have started the refund for {}. It goes to the card that you paid with and takes three to five working days. You will receive a confirmation by e-mail in a few minutes.",
        "You are welcome! Is there anything else about {} that I can help you with today?",
    ];
    let count = 5 + (number * 7) % 26;
    let message = |index: usize| {
        let (author, texts) = if index.is_multiple_of(2) {
            (json!({"type": "contact", "external_id": format!("customer-{number}")}), CUSTOMER)
        } else {
            (json!({"type": "ai", "external_id": format!("bot-{}", number % 4)}), AGENT)
        };
        let content = texts[(number + index / 2) % texts.len()]
            .replace("{}", &(10_000 + 37 * number + index).to_string());
        json!({
            "external_id": format!("g-{number}-{index:03}"), "kind": "message", "author": author,
            "content": content, "timestamp": 1_700_000_000_000_i64 + 30_000 * index as i64,
        })
    };
    let messages: Vec<Value> = (0..count).map(message).collect();
    json!({"ticket_id": "", "source": "generated", "subject": format!("Order {number}"), "messages": messages})
}
