//! Parser of a file of one writer's conversations.
//!
//! `### ID | domain | subject | channel` begins a conversation. Every item is a line `C: [5m] text`: author (C customer, A
//! AI agent, H human, N internal comment, S system event, M several people in one item), time since the previous
//! item (30 s by default), text. Continuation lines begin with two spaces. `= design: …` ends the conversation.

use std::collections::BTreeSet;
use std::path::Path;

use assay_contracts::conversation::Conversation;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::read_text;
use crate::data::DataError;

/// Earliest start of a conversation, epoch milliseconds. The start depends on the id alone.
const EARLIEST_START_MILLIS: u64 = 1_767_600_000_000;
/// Range of starts after [`EARLIEST_START_MILLIS`].
const START_RANGE_SECONDS: u64 = 90 * 86_400;
/// Time between an item without a time and the previous item.
const DEFAULT_GAP_SECONDS: u64 = 30;

/// A conversation of the file.
#[derive(Debug)]
struct ParsedConversation {
    id: String,
    subject: String,
    items: Vec<Item>,
    has_design: bool,
    /// Line of the header.
    line: usize,
}

#[derive(Debug, PartialEq)]
struct Item {
    author: char,
    /// Seconds since the previous item.
    gap: u64,
    text: String,
}

/// The conversations of a file, in order.
pub(super) fn read_conversations(path: &Path) -> Result<Vec<Conversation>, DataError> {
    parse(path, &read_text(path)?)
}

fn parse(path: &Path, text: &str) -> Result<Vec<Conversation>, DataError> {
    let error_in = |line: usize, reason: String| DataError::Line { path: path.to_owned(), line, reason };
    let mut found: Vec<ParsedConversation> = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        parse_line(&mut found, index + 1, line).map_err(|reason| error_in(index + 1, reason))?;
    }
    let mut ids = BTreeSet::new();
    let mut conversations = Vec::new();
    for written in found {
        let refused = |reason: String| error_in(written.line, reason);
        if written.items.is_empty() || !written.has_design {
            return Err(refused(format!("{} has no items or no line `= design:`", written.id)));
        }
        if !ids.insert(written.id.clone()) {
            return Err(refused(format!("{} was written before", written.id)));
        }
        let body = request_body(&written).to_string();
        let parsed = Conversation::parse(body.as_bytes()).map_err(|error| refused(error.to_string()))?;
        conversations.push(parsed);
    }
    Ok(conversations)
}

/// Adds a line to the conversations of the lines before it.
fn parse_line(found: &mut Vec<ParsedConversation>, number: usize, line: &str) -> Result<(), String> {
    if let Some(head) = line.strip_prefix("### ") {
        found.push(parse_header(head, number)?);
        return Ok(());
    }
    let is_empty = line.trim().is_empty();
    let Some(current) = found.last_mut() else {
        return if is_empty { Ok(()) } else { Err("a conversation begins with `### `".to_owned()) };
    };
    if line.starts_with("= design:") {
        let is_duplicate = std::mem::replace(&mut current.has_design, true);
        return if is_duplicate {
            Err("the conversation has a line `= design:` already".to_owned())
        } else {
            Ok(())
        };
    }
    if let Some(item) = parse_item(line) {
        current.items.push(item);
        return if current.has_design { Err("an item follows `= design:`".to_owned()) } else { Ok(()) };
    }
    // The design may have further lines, and empty lines may precede the first item.
    if current.has_design || (is_empty && current.items.is_empty()) {
        return Ok(());
    }
    let Some(last) = current.items.last_mut() else {
        return Err("an item begins with `C:`, `A:`, `H:`, `N:`, `S:` or `M:`".to_owned());
    };
    match line.strip_prefix("  ") {
        Some(further) => last.text.extend(["\n", further]),
        None if is_empty => last.text.push('\n'),
        None => {
            return Err("it is neither an item nor a further line, which begins with two spaces".to_owned());
        }
    }
    Ok(())
}

fn parse_header(head: &str, line: usize) -> Result<ParsedConversation, String> {
    let fields: Vec<&str> = head.split('|').map(str::trim).collect();
    let [id, _domain, subject, _channel] = fields.as_slice() else {
        return Err(format!(
            "the header has {} fields: it must be `### ID | domain | subject | channel`",
            fields.len()
        ));
    };
    if id.is_empty() || id.contains(char::is_whitespace) {
        return Err(format!("the id is `{id}`: it must be one word"));
    }
    let (id, subject) = ((*id).to_owned(), (*subject).to_owned());
    Ok(ParsedConversation { id, subject, items: Vec::new(), has_design: false, line })
}

fn parse_item(line: &str) -> Option<Item> {
    let (author, text) = line.split_once(':')?;
    let author = match author {
        "C" | "A" | "H" | "N" | "S" | "M" => author.chars().next()?,
        _ => return None,
    };
    let text = text.strip_prefix(char::is_whitespace).unwrap_or(text);
    let (gap, text) = parse_gap(text).unwrap_or((DEFAULT_GAP_SECONDS, text));
    Some(Item { author, gap, text: text.to_owned() })
}

/// The seconds of `[1.5h] text`, and the text. Anything else in brackets belongs to the text.
fn parse_gap(text: &str) -> Option<(u64, &str)> {
    let (time, rest) = text.strip_prefix('[')?.split_once(']')?;
    let unit = match time.chars().next_back()? {
        's' => 1.0,
        'm' => 60.0,
        'h' => 3_600.0,
        'd' => 86_400.0,
        _ => return None,
    };
    let number = time.get(..time.len() - 1)?.trim_end();
    let is_decimal = number.starts_with(|first: char| first.is_ascii_digit())
        && number.ends_with(|last: char| last.is_ascii_digit())
        && number.chars().all(|character| character.is_ascii_digit() || character == '.');
    let seconds = number.parse::<f64>().ok().filter(|_| is_decimal)? * unit;
    Some((seconds as u64, rest.trim_start()))
}

/// The body of an import; the same as in `training/corpus.py`.
fn request_body(written: &ParsedConversation) -> Value {
    let digest = Sha256::digest(written.id.as_bytes());
    let id_number = digest.iter().take(3).fold(0, |number, byte| number * 256 + u64::from(*byte));
    let mut timestamp = EARLIEST_START_MILLIS + id_number % START_RANGE_SECONDS * 1_000;
    let mut messages = Vec::new();
    for (index, item) in written.items.iter().enumerate() {
        if index > 0 {
            timestamp += item.gap * 1_000;
        }
        let content = item.text.trim();
        if !content.is_empty() {
            messages.push(json!({
                "external_id": format!("{}-{}", written.id, index + 1), "timestamp": timestamp, "content": content,
                "author": author(item.author), "kind": if item.author == 'N' { "comment" } else { "message" },
            }));
        }
    }
    let mut body = json!({"ticket_id": written.id, "source": "written", "messages": messages});
    if let Some(fields) = body.as_object_mut().filter(|_| !written.subject.is_empty()) {
        fields.insert("subject".to_owned(), json!(written.subject));
    }
    body
}

fn author(letter: char) -> Value {
    match letter {
        'C' => json!({"type": "contact", "external_id": "customer"}),
        'A' => json!({"type": "ai", "external_id": "support-bot"}),
        'H' | 'N' => json!({"type": "teammate", "external_id": "teammate"}),
        'S' => json!({"type": "system"}),
        _ => json!({"type": "mixed"}),
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::{AuthorType, MessageKind};

    use super::*;

    const FILE: &str = "### w1-01 | shop | Parcel | chat\nC: where is it\nA: [1.5m] Two days away.\n  \n  - by post\n\
        N: [2h] paid\nS: [image] closed\n= design: An answer.\n  More of it.\n\n### w1-02 | shop |  | email\nC: [9d] hello\n\
        = design: Nothing.\n";

    #[test]
    fn file_is_parsed() {
        let found = parse(Path::new("w1.txt"), FILE).unwrap();
        assert_eq!(found.len(), 2);
        let messages = &found[0].messages;
        let contents: Vec<&str> = messages.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(contents, ["where is it", "Two days away.\n\n- by post", "paid", "[image] closed"]);
        let at = |index: usize| messages[index].timestamp.as_millis();
        assert_eq!([at(1) - at(0), at(2) - at(1), at(3) - at(2)], [90_000, 7_200_000, 30_000]);
        assert_eq!(messages[2].kind, MessageKind::Comment);
        assert_eq!(messages[3].author.author_type(), AuthorType::System);
        assert_eq!((found[0].subject.as_deref(), &found[1].subject), (Some("Parcel"), &None));
    }

    #[test]
    fn start_time_matches_training_code() {
        // int(hashlib.sha256(b"w1-01").hexdigest()[:6], 16) == 16238527.
        let found = parse(Path::new("w1.txt"), FILE).unwrap();
        let expected = 1_767_600_000_000 + 16238527 % 7_776_000 * 1_000;
        assert_eq!(found[0].messages[0].timestamp.as_millis(), expected);
    }

    #[test]
    fn invalid_file_is_refused_with_line() {
        let cases = [
            ("hello\n", "line 1: a conversation begins"),
            ("### w1-01 | shop | chat\n", "line 1: the header has 3 fields"),
            ("### w 1 | shop | | chat\n", "line 1: the id is `w 1`"),
            ("### w1-01 | a | b | c\nhello\n", "line 2: an item begins"),
            ("### w1-01 | a | b | c\nC: x\nhello\n= design: y", "line 3: it is neither"),
            ("### w1-01 | a | b | c\nC: x\n", "line 1: w1-01 has no items or no line"),
            ("### w1-01 | a | b | c\nC: x\n= design: y\nA: z\n", "line 4: an item follows"),
            ("### w1-01 | a | b | c\nC: x\n= design: y\n= design: z\n", "line 4: the conversation has"),
        ];
        for (text, reason) in cases {
            let refused = parse(Path::new("w1.txt"), text).unwrap_err().to_string();
            assert!(refused.starts_with("w1.txt, ") && refused.contains(reason), "{text}: {refused}");
        }
        let twice = "### w1-01 | a | b | c\nC: x\n= design: y\n".repeat(2);
        let refused = parse(Path::new("w1.txt"), &twice).unwrap_err().to_string();
        assert!(refused.contains("line 4: w1-01 was written before"), "{refused}");
    }

    #[test]
    fn only_durations_in_brackets_are_gaps() {
        assert_eq!(parse_gap("[40s] Hello"), Some((40, "Hello")));
        assert_eq!(parse_gap("[1.5 h]Hello"), Some((5_400, "Hello")));
        for text in
            ["[image] x", "[20h–21h] x", "[voice 0:48] x", "[.5m] x", "[1.m] x", "[1e3s] x", "[] x", "Hello"]
        {
            assert_eq!(parse_gap(text), None, "{text}");
        }
    }
}
