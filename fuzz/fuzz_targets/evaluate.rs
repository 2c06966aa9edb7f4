//! Any texts by any authors: the engine evaluates every conversation.
//!
//! An input is a list of messages, separated by U+001E. The first character of each stands for its author (see `message`); upper
//! case makes the message a comment.

#![no_main]

#[path = "checks.rs"]
mod checks;

use assay_contracts::conversation::Conversation;
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::{Value, json};

const SEPARATOR: char = '\u{1E}';
const MAX_MESSAGES: usize = 50;

fuzz_target!(|data: &[u8]| -> Corpus {
    // NUL is refused before the engine, and would hide everything else in the message.
    let text = String::from_utf8_lossy(data).replace('\0', " ");
    let messages: Vec<Value> =
        text.split(SEPARATOR).enumerate().filter_map(message).take(MAX_MESSAGES).collect();
    let body = json!({"ticket_id": "t", "source": "s", "messages": messages});
    let Ok(conversation) = Conversation::parse(body.to_string().as_bytes()) else {
        return Corpus::Reject;
    };
    checks::check_evaluation(&conversation);
    Corpus::Keep
});

/// One message; `None` for one without a text.
fn message((index, part): (usize, &str)) -> Option<Value> {
    let mut characters = part.chars();
    let author_letter = characters.next()?;
    let content = Some(characters.as_str()).filter(|content| !content.is_empty())?;
    let author = match author_letter.to_ascii_lowercase() {
        'c' => json!({"type": "contact", "external_id": "c"}),
        'a' => json!({"type": "ai", "external_id": "a"}),
        'b' => json!({"type": "ai", "id": "b"}),
        't' => json!({"type": "teammate", "external_id": "t"}),
        's' => json!({"type": "system"}),
        'm' => json!({"type": "mixed"}),
        _ => return None,
    };
    let kind = if author_letter.is_ascii_uppercase() { "comment" } else { "message" };
    let (external_id, timestamp) = (format!("m{index}"), index * 600_000);
    Some(json!({
        "author": author, "kind": kind, "content": content, "external_id": external_id, "timestamp": timestamp
    }))
}
