//! Conversations for fitting: the samples of the scoring engine in several lengths and with several endings.
#![allow(dead_code, reason = "every test binary uses a part")]

use std::path::{Path, PathBuf};

use assay_scoring_fit::ReviewedConversations;
use serde_json::{Value, json};

/// Last messages of a customer.
const ENDINGS: [&str; 6] = [
    "Thank you, that solved it!",
    "No, that did not fix it. It is still not working.",
    "I want to talk to a real person please.",
    "Ok.",
    "And what about the other order?",
    "Never mind, I give up.",
];

/// The bodies of `count` different conversations, the same every time.
pub fn bodies(count: usize) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scoring/tests/samples");
    let mut samples: Vec<Value> = Vec::new();
    for file in ["endings.jsonl", "handoff.jsonl", "traps.jsonl"] {
        let text = std::fs::read_to_string(folder.join(file)).unwrap();
        samples.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    }
    (0..count).map(|index| body(&samples[index % samples.len()], index)).collect()
}

/// Number of messages by the customer.
pub fn customer_messages(body: &Value) -> usize {
    let messages = body["messages"].as_array().unwrap();
    messages.iter().filter(|message| message["author"]["type"] == "contact").count()
}

fn body(sample: &Value, index: usize) -> Value {
    let mut body = sample.clone();
    body["ticket_id"] = json!(format!("ticket-{index}"));
    let rounds = index / 3 % 7;
    let messages = body["messages"].as_array_mut().unwrap();
    let mut timestamp = messages.last().unwrap()["timestamp"].as_u64().unwrap();
    let mut add = |author: Value, content: &str| {
        timestamp += 30_000;
        messages
            .push(json!({"author": author, "content": content, "external_id": format!("added-{timestamp}"),
            "timestamp": timestamp, "kind": "message"}));
    };
    for round in 0..rounds {
        add(json!({"type": "ai", "external_id": "helper"}), &format!("Please open settings page {round}."));
        add(
            json!({"type": "contact", "external_id": "customer-7"}),
            &format!("Opened page {round} of the settings."),
        );
    }
    add(json!({"type": "ai", "external_id": "helper"}), "Restart the device and the light turns green.");
    add(json!({"type": "contact", "external_id": "customer-7"}), ENDINGS[index % ENDINGS.len()]);
    body
}

/// Writes JSON lines.
pub fn write_lines(path: &Path, lines: &[Value]) {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(path, text.join("\n")).unwrap();
}

/// Writes conversations and labels to a folder and reads them back.
pub fn reviewed(folder: &Path, bodies: &[Value], labels: &[Value]) -> ReviewedConversations {
    let (conversations, labelled) = files(folder);
    write_lines(&conversations, bodies);
    write_lines(&labelled, labels);
    ReviewedConversations::read(&conversations, &labelled).unwrap()
}

pub fn files(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("conversations.jsonl"), folder.join("labels.jsonl"))
}
