//! Conversations for the pages: some of the corpus, in the languages of the scorer, as a helpdesk would send them; and two without
//! AXIS.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Writers of the corpus (corpus/writers.tsv) and how many of their conversations: English first, then one for each other
/// language of the scorer.
const WRITERS: [(&str, usize); 7] =
    [("w01", 24), ("e1", 20), ("w33", 6), ("w02", 6), ("w10", 6), ("w04", 6), ("w16", 6)];

/// The AI agents that take part, each with the label of its tool.
const AGENTS: [(&str, &str); 3] =
    [("support-bot", "intercom"), ("billing-bot", "zendesk"), ("shop-assistant", "custom")];

/// The conversations are spread over this many days, up to yesterday: the default period of the overview and the one before.
const DAYS: u64 = 56;
const DAY_MILLIS: u64 = 86_400_000;
/// The day of the conversations without AXIS: within the default period, and none of its latest.
const DAY_WITHOUT_AXIS: u64 = 40;

pub fn agents() -> impl Iterator<Item = &'static str> {
    AGENTS.into_iter().map(|(name, _)| name)
}

/// The conversations as bodies of imports.
pub fn conversations() -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/conversations");
    let mut texts = Vec::new();
    for (writer, count) in WRITERS {
        let text = std::fs::read_to_string(folder.join(format!("{writer}.txt")))?;
        texts.extend(text.split("\n### ").take(count).map(str::to_owned));
    }
    let now = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
    let begin = now - now % DAY_MILLIS - DAYS * DAY_MILLIS;
    let step = DAYS * DAY_MILLIS / u64::try_from(texts.len())?;
    // 29 has no common divisor with the number of texts: each text gets its own time, and languages and days mix.
    let moments = (0..texts.len()).map(|at| begin + u64::try_from(at * 29 % texts.len()).unwrap_or(0) * step);
    let of_corpus = texts.iter().zip(moments).enumerate();
    let mut conversations: Vec<Value> =
        of_corpus.map(|(at, (text, begin))| conversation(at, text, begin)).collect::<Result<_>>()?;
    conversations.extend(without_axis(begin + DAY_WITHOUT_AXIS * DAY_MILLIS));
    Ok(conversations)
}

/// Two conversations to which AXIS does not apply: without an AI agent, and without the customer.
fn without_axis(begin: u64) -> [Value; 2] {
    let conversation = |id: &str, subject: &str, lines: &[(&str, &str)]| {
        let message = |(number, (code, said)): (u64, &(&str, &str))| {
            json!({
                "external_id": format!("{id}-{number}"), "timestamp": begin + number * 60_000, "content": said,
                "author": author(code, id, AGENTS[0].0),
            })
        };
        let messages: Vec<Value> = (1..).zip(lines).map(message).collect();
        json!({"ticket_id": id, "source": "helpdesk", "subject": subject, "messages": messages})
    };
    [
        conversation(
            "without-ai",
            "Invoice for March",
            &[
                ("C", "Could you send me the invoice for March again? The link in your mail has expired."),
                ("H", "Of course, I have attached it to this mail."),
                ("C", "Got it, thank you!"),
            ],
        ),
        conversation(
            "without-customer",
            "Your parcel is late",
            &[
                ("A", "Your parcel is one day late because of the storm. It arrives on Friday."),
                ("S", "Closed without an answer"),
            ],
        ),
    ]
}

fn conversation(at: usize, text: &str, begin: u64) -> Result<Value> {
    let mut lines = text.trim_start_matches("### ").lines();
    let head: Vec<&str> = lines.next().context("no head")?.split('|').map(str::trim).collect();
    let [id, _, subject, ..] = head[..] else { anyhow::bail!("a head without a subject: {head:?}") };
    let (agent, tool) = AGENTS[at % AGENTS.len()];
    let mut messages: Vec<Value> = Vec::new();
    let mut moment = begin;
    for line in lines.take_while(|line| !line.starts_with("= ")) {
        let Some((code, said)) = line.split_once(": ").filter(|(code, _)| code.len() == 1) else {
            // A further line of the same text.
            let Some(Value::String(content)) = messages.last_mut().map(|last| &mut last["content"]) else {
                continue;
            };
            content.push('\n');
            content.push_str(line.trim_start());
            continue;
        };
        let (wait, said) = wait(said);
        moment += wait;
        let mut message = json!({
            "external_id": format!("{id}-{}", messages.len() + 1), "timestamp": moment, "content": said,
            "author": author(code, id, agent),
        });
        if code == "N" {
            message["kind"] = "comment".into();
        }
        if code == "A" {
            message["ai_tool"] = tool.into();
        }
        messages.push(message);
    }
    Ok(json!({"ticket_id": id, "source": "helpdesk", "subject": subject, "messages": messages}))
}

/// The author of a line by its code (corpus/PROTOCOL.md): `C` customer, `A` AI agent, `S` event; people of the helpdesk write the
/// rest.
fn author(code: &str, id: &str, agent: &str) -> Value {
    match code {
        "C" => json!({"type": "contact", "external_id": format!("customer-{id}")}),
        "A" => json!({"type": "ai", "external_id": agent}),
        "S" => json!({"type": "system"}),
        _ => json!({"type": "teammate", "external_id": "marta", "name": "Marta Lindqvist"}),
    }
}

/// Splits `[40s] text` into the delay before the message, in milliseconds, and its text. The default is half a minute.
fn wait(said: &str) -> (u64, &str) {
    let written = said.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let seconds = written.and_then(|(wait, rest)| {
        let number: u64 = wait.get(..wait.len() - 1)?.parse().ok()?;
        let unit = match wait.get(wait.len() - 1..)? {
            "s" => 1,
            "m" => 60,
            "h" => 3_600,
            "d" => 86_400,
            _ => return None,
        };
        Some((number * unit * 1_000, rest))
    });
    seconds.unwrap_or((30_000, said))
}
