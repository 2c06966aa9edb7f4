//! From what helpdesks export to request bodies of `POST /v1/assess`. Pure: text in, requests or reasons out.
//!
//! What cannot be made a message is never left out in silence: either the conversation is refused with a reason, or a notice
//! says what was left out.

mod html;
mod intercom;
mod requests;
mod zendesk;

use std::collections::BTreeMap;

use assay_contracts::conversation::{AiTool, MAX_MESSAGES, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Of a longer conversation, so many of its first and of its last messages are sent: how it began, and how it ended.
pub const FIRST_KEPT: usize = 10;
/// See [`FIRST_KEPT`].
pub const LAST_KEPT: usize = MAX_MESSAGES - FIRST_KEPT;

/// What the input holds.
#[derive(Debug, Clone)]
pub enum Format {
    /// Request bodies, one a line.
    Assay,
    /// Tickets of Zendesk with their comments.
    Zendesk(Mapping),
    /// Conversations of Intercom.
    Intercom(Mapping),
}

/// What the user says about the input, because it does not say so itself.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// `source_account_id` of all requests.
    pub account: Option<String>,
    /// Who among the authors is which registered AI agent.
    pub ai: AiAuthors,
}

/// Who among the authors of a helpdesk is which AI agent.
#[derive(Debug, Clone, Default)]
pub struct AiAuthors {
    /// Agents by the helpdesk's id of the author.
    pub agents: BTreeMap<String, String>,
    /// The agent behind bots that are not among `agents`.
    pub of_all_bots: Option<String>,
    /// The tool that their messages are labelled with.
    pub tool: Option<AiTool>,
}

/// One conversation of the input.
pub struct Converted {
    /// As it stands in the input.
    pub original: Vec<u8>,
    /// What is sent, or why it cannot be.
    pub request: Result<Request, String>,
}

/// What is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The body.
    pub body: Vec<u8>,
    /// Messages that were left out because there were too many.
    pub left_out: usize,
    /// What else the user should know of it.
    pub notices: Vec<String>,
}

impl Format {
    /// Whether every line of the input is one request as it stands.
    pub const fn is_a_request_a_line(&self) -> bool {
        matches!(self, Self::Assay)
    }

    /// The conversations in a line.
    pub fn convert(&self, line: Vec<u8>) -> Vec<Converted> {
        match self {
            Self::Assay => vec![requests::convert(line)],
            Self::Zendesk(mapping) => zendesk::convert(line, mapping),
            Self::Intercom(mapping) => intercom::convert(line, mapping),
        }
    }
}

/// Ids are numbers in one export and texts in another.
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

/// A conversation on its way to a request.
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
    /// The request: messages in the order of their times, and not too many of them.
    fn into_request(self, source: &str, account: Option<&str>) -> Result<Request, String> {
        let Self { ticket_id, subject, mut messages, notices } = self;
        if messages.is_empty() {
            return Err("it has no message with a text".to_owned());
        }
        messages.sort_by_key(|message| message.timestamp);
        let (messages, left_out) = shortened(messages);
        let subject = subject.as_deref().map(str::trim).filter(|subject| !subject.is_empty());
        let body =
            Body { ticket_id: &ticket_id, source, source_account_id: account, subject, messages: &messages };
        let body = serde_json::to_vec(&body).map_err(|error| error.to_string())?;
        Ok(Request { body, left_out, notices })
    }
}

/// The messages that are sent, and how many are not.
fn shortened<T>(mut messages: Vec<T>) -> (Vec<T>, usize) {
    let left_out = messages.len().saturating_sub(MAX_MESSAGES);
    if left_out > 0 {
        messages.drain(FIRST_KEPT..messages.len() - LAST_KEPT);
    }
    (messages, left_out)
}

/// Parses a line; an array or a page (an object with an array named `page`) holds several conversations.
fn parse(
    line: Vec<u8>,
    page: &str,
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
        Value::Object(members) if members.get(page).is_some_and(Value::is_array) => {
            match members.remove(page) {
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

/// What stands for attachments in the text, so that the scorer sees that something was sent.
fn attachments_text<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("[attachment: {name}]")).collect();
    names.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_conversation_the_first_ten_and_the_last_forty_are_kept() {
        for count in [0, 1, 50] {
            assert_eq!(shortened((0..count).collect()), ((0..count).collect::<Vec<_>>(), 0));
        }
        for count in [51, 500] {
            let expected: Vec<_> = (0..10).chain(count - 40..count).collect();
            assert_eq!(shortened((0..count).collect()), (expected, count - 50));
        }
    }
}
