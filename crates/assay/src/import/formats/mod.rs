//! Converts exports of helpdesks to request bodies of `POST /v1/assess`. Pure: text in, requests or refusals out.
//!
//! Nothing is dropped silently: what cannot be converted either refuses the conversation with a reason or adds a notice.

mod html;
mod intercom;
mod requests;
mod zendesk;

use std::collections::BTreeMap;

use assay_contracts::conversation::{AiTool, MAX_MESSAGES, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Leading messages kept of a conversation that is too long. Its beginning and its end matter most to the scorer.
pub const FIRST_KEPT: usize = 10;
/// Trailing messages kept; see [`FIRST_KEPT`].
pub const LAST_KEPT: usize = MAX_MESSAGES - FIRST_KEPT;

/// Format of the input.
#[derive(Debug, Clone)]
pub enum Format {
    /// Request bodies, one per line.
    Assay,
    /// Tickets of Zendesk with their comments.
    Zendesk(Mapping),
    /// Conversations of Intercom.
    Intercom(Mapping),
}

/// Facts that the input lacks and the user supplies.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// `source_account_id` of all requests.
    pub account: Option<String>,
    pub ai: AiAuthors,
}

/// Maps authors of the helpdesk to registered AI agents.
#[derive(Debug, Clone, Default)]
pub struct AiAuthors {
    /// Agents by author id.
    pub agents: BTreeMap<String, String>,
    /// The agent of bots that are not in `agents`.
    pub default_agent: Option<String>,
    /// The tool that their messages are labelled with.
    pub tool: Option<AiTool>,
}

/// One conversation of the input.
pub struct Converted {
    /// Unchanged from the input.
    pub original: Vec<u8>,
    /// The request, or the reason why there is none.
    pub request: Result<Request, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub body: Vec<u8>,
    /// Messages dropped because there were too many.
    pub left_out: usize,
    /// Other things the user should know.
    pub notices: Vec<String>,
}

impl Format {
    /// Whether each line of the input is one request body.
    pub const fn is_request_per_line(&self) -> bool {
        matches!(self, Self::Assay)
    }

    /// Converts the conversations in a line.
    pub fn convert(&self, line: Vec<u8>) -> Vec<Converted> {
        match self {
            Self::Assay => vec![requests::convert(line)],
            Self::Zendesk(mapping) => zendesk::convert(line, mapping),
            Self::Intercom(mapping) => intercom::convert(line, mapping),
        }
    }
}

/// Some exports write ids as numbers, others as strings.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(serde_json::Number),
    Text(String),
}

impl Id {
    fn into_text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text,
        }
    }

    fn text(&self) -> String {
        self.clone().into_text()
    }
}

/// A request that is not yet sorted and shortened.
struct Draft {
    ticket_id: String,
    subject: Option<String>,
    /// In any order.
    messages: Vec<Message>,
    notices: Vec<String>,
}

#[derive(Serialize)]
struct Body<'a> {
    ticket_id: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_account_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    messages: &'a [Message],
}

impl Draft {
    /// Sorts the messages by time and drops those beyond the limit.
    fn into_request(self, source: &str, account: Option<&str>) -> Result<Request, String> {
        let Self { ticket_id, subject, mut messages, notices } = self;
        if messages.is_empty() {
            return Err("it has no message with a text".to_owned());
        }
        messages.sort_by_key(|message| message.timestamp);
        let (messages, left_out) = drop_middle(messages);
        let subject = subject.as_deref().map(str::trim).filter(|subject| !subject.is_empty());
        let body =
            Body { ticket_id: &ticket_id, source, source_account_id: account, subject, messages: &messages };
        let body = serde_json::to_vec(&body).map_err(|error| error.to_string())?;
        Ok(Request { body, left_out, notices })
    }
}

/// Drops the messages beyond the limit. Returns the others and the number dropped.
fn drop_middle<T>(mut messages: Vec<T>) -> (Vec<T>, usize) {
    let left_out = messages.len().saturating_sub(MAX_MESSAGES);
    if left_out > 0 {
        messages.drain(FIRST_KEPT..messages.len() - LAST_KEPT);
    }
    (messages, left_out)
}

/// Parses a line; an array or a page (an object with an array of the name `list`) holds several conversations. `convert` gets
/// each of them, and what else its page holds.
fn parse(
    line: Vec<u8>,
    list: &str,
    convert: impl Fn(Value, &Value) -> Result<Request, String>,
) -> Vec<Converted> {
    let mut document: Value = match serde_json::from_slice(&line) {
        Ok(document) => document,
        Err(error) => {
            return vec![Converted { original: line, request: Err(format!("it is not JSON: {error}")) }];
        }
    };
    let items = match &mut document {
        Value::Array(items) => std::mem::take(items),
        Value::Object(members) if members.get(list).is_some_and(Value::is_array) => {
            match members.remove(list) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            }
        }
        _ => {
            let request = convert(document, &Value::Null);
            return vec![Converted { original: line, request }];
        }
    };
    let converted = |item: Value| {
        let original = item.to_string().into_bytes();
        Converted { original, request: convert(item, &document) }
    };
    items.into_iter().map(converted).collect()
}

/// Placeholder text for attachments, so that the scorer sees that something was sent.
fn attachments_text<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("[attachment: {name}]")).collect();
    names.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_conversation_keeps_first_ten_and_last_forty() {
        for count in [0, 1, 50] {
            assert_eq!(drop_middle((0..count).collect()), ((0..count).collect::<Vec<_>>(), 0));
        }
        for count in [51, 500] {
            let expected: Vec<_> = (0..10).chain(count - 40..count).collect();
            assert_eq!(drop_middle((0..count).collect()), (expected, count - 50));
        }
    }
}
