//! Intercom: conversations as returned by "Retrieve a conversation" (developers.intercom.com, pages "The conversation
//! model", "Conversation Part Model" and "Retrieve a conversation"; description of the API in intercom/Intercom-OpenAPI).
//!
//! Several of them may come in an array, or as a page `{"conversations": […]}`; those of "List conversations" have no parts
//! and are refused, because they would be scored by their first message alone.
//!
//! - `source` is the first message; a part with a text is a message of its author; a `note` is an internal comment.
//! - A part without a text (assignment, close, snooze and so on) is a system event that says what happened.
//! - `user`, `lead` and `contact` are customers, `admin` and `team` teammates. A `bot` is the AI agent of `--ai-agent`;
//!   with `from_ai_agent: false` it is a workflow, and therefore the system.
//! - Texts are HTML, times are seconds.

use assay_contracts::conversation::{AiTool, Author, Message, MessageKind};
use assay_contracts::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::html::text_of;
use super::{AiAuthors, Converted, Draft, Id, Mapping, Request, attachments_text, parse};

const SOURCE: &str = "intercom";

#[derive(Deserialize)]
struct Conversation {
    id: Id,
    title: Option<String>,
    created_at: i64,
    source: Option<Source>,
    conversation_parts: Option<Parts>,
}

#[derive(Deserialize)]
struct Source {
    id: Option<Id>,
    subject: Option<String>,
    body: Option<String>,
    author: Person,
    #[serde(default)]
    attachments: Vec<Attachment>,
    #[serde(default)]
    redacted: bool,
}

#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    conversation_parts: Vec<Part>,
    total_count: Option<usize>,
}

#[derive(Deserialize)]
struct Part {
    id: Id,
    part_type: String,
    body: Option<String>,
    created_at: i64,
    author: Option<Person>,
    assigned_to: Option<Assignee>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    #[serde(default)]
    redacted: bool,
}

#[derive(Deserialize)]
struct Person {
    #[serde(rename = "type")]
    kind: String,
    id: Option<Id>,
    name: Option<String>,
    from_ai_agent: Option<bool>,
    is_ai_answer: Option<bool>,
}

#[derive(Deserialize)]
struct Assignee {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Attachment {
    name: Option<String>,
}

pub fn convert(line: Vec<u8>, mapping: &Mapping) -> Vec<Converted> {
    parse(line, "conversations", |item, _| request_of(item, mapping))
}

fn request_of(item: Value, mapping: &Mapping) -> Result<Request, String> {
    let conversation: Conversation = serde_json::from_value(item)
        .map_err(|error| format!("it is no conversation as in Intercom's API: {error}"))?;
    let id = conversation.id.into_text();
    let Some(Parts { conversation_parts: parts, total_count }) = conversation.conversation_parts else {
        return Err(format!(
            "conversation {id} has no `conversation_parts`: lists leave them out, ask for the conversation itself"
        ));
    };
    let mut draft =
        Draft { ticket_id: id, subject: conversation.title, messages: Vec::new(), notices: Vec::new() };
    if let Some(missing) =
        total_count.and_then(|total| total.checked_sub(parts.len())).filter(|count| *count > 0)
    {
        draft
            .notices
            .push(format!("{missing} of its parts are not in the input: Intercom gives 500 at most"));
    }
    if let Some(source) = conversation.source {
        if draft.subject.as_deref().is_none_or(str::is_empty) {
            draft.subject = source.subject.as_deref().map(text_of);
        }
        draft.add_source(source, conversation.created_at, &mapping.ai)?;
    }
    for part in parts {
        draft.add_part(part, &mapping.ai)?;
    }
    draft.into_request(SOURCE, mapping.account.as_deref())
}

impl Draft {
    fn add_source(&mut self, source: Source, created_at: i64, ai: &AiAuthors) -> Result<(), String> {
        // Ids of sources and of parts are separate sequences.
        let external_id =
            format!("source-{}", source.id.as_ref().map_or_else(|| self.ticket_id.clone(), Id::text));
        let Some(content) = content_of(source.body.as_deref(), &source.attachments, source.redacted) else {
            self.notices.push("its first message has no text and was left out".to_owned());
            return Ok(());
        };
        let (author, ai_tool) =
            author_of(&source.author, ai).map_err(|reason| format!("source: {reason}"))?;
        let timestamp = timestamp_of(created_at).map_err(|reason| format!("created_at: {reason}"))?;
        let kind = MessageKind::Message;
        self.messages.push(Message { author, content, external_id, timestamp, kind, ai_tool });
        Ok(())
    }

    fn add_part(&mut self, part: Part, ai: &AiAuthors) -> Result<(), String> {
        let external_id = part.id.text();
        let in_part = |reason: String| format!("part {external_id}: {reason}");
        let timestamp = timestamp_of(part.created_at).map_err(in_part)?;
        let is_text_part =
            matches!(part.part_type.as_str(), "comment" | "note" | "note_and_reopen" | "quick_reply");
        let kind = match part.part_type.as_str() {
            "note" | "note_and_reopen" => MessageKind::Comment,
            _ => MessageKind::Message,
        };
        let (author, ai_tool, content) =
            match content_of(part.body.as_deref(), &part.attachments, part.redacted) {
                Some(content) => {
                    let person =
                        part.author.as_ref().ok_or_else(|| in_part("it has no author".to_owned()))?;
                    let (author, ai_tool) = author_of(person, ai).map_err(in_part)?;
                    (author, ai_tool, content)
                }
                None if is_text_part => {
                    self.notices.push(format!("part {external_id} has no text and was left out"));
                    return Ok(());
                }
                None => (Author::System { external_id: None, name: None }, None, event_text(&part)),
            };
        self.messages.push(Message { author, content, external_id, timestamp, kind, ai_tool });
        Ok(())
    }
}

fn content_of(body: Option<&str>, attachments: &[Attachment], redacted: bool) -> Option<String> {
    let text = body.map(text_of).filter(|text| !text.is_empty()).unwrap_or_else(|| {
        attachments_text(attachments.iter().map(|file| file.name.as_deref().unwrap_or("file")))
    });
    if text.is_empty() { redacted.then(|| "[redacted]".to_owned()) } else { Some(text) }
}

/// Text of a system event, in phrases that the scorer recognises.
fn event_text(part: &Part) -> String {
    let to = part.assigned_to.as_ref().and_then(|assignee| assignee.kind.as_deref());
    match (part.part_type.contains("assign"), to) {
        (true, Some("admin")) => "conversation assigned to a teammate".to_owned(),
        (true, Some("team")) => "conversation assigned to team".to_owned(),
        (true, Some("bot")) => "handed to a bot".to_owned(),
        (true, _) => "assignment removed".to_owned(),
        (false, _) => part.part_type.replace('_', " "),
    }
}

fn author_of(person: &Person, ai: &AiAuthors) -> Result<(Author, Option<AiTool>), String> {
    let id = person.id.as_ref().map(Id::text).filter(|id| !id.is_empty());
    let name = person.name.clone().filter(|name| !name.trim().is_empty());
    let is_intercom_ai = person.from_ai_agent == Some(true) || person.is_ai_answer == Some(true);
    let is_ai = is_intercom_ai || (person.kind == "bot" && person.from_ai_agent != Some(false));
    let agent = match id.as_ref().and_then(|id| ai.agents.get(id)) {
        None if is_ai => Some(ai.default_agent.as_ref().ok_or_else(|| unmapped_bot(id.as_deref()))?),
        mapped_agent => mapped_agent,
    };
    if let Some(agent) = agent {
        let tool = ai.tool.or(is_intercom_ai.then_some(AiTool::Intercom));
        return Ok((Author::Ai { id: None, external_id: Some(agent.clone()), name }, tool));
    }
    let with_id = || id.clone().ok_or_else(|| format!("its author, of type `{}`, has no id", person.kind));
    let author = match person.kind.as_str() {
        "user" | "lead" | "contact" => Author::Contact { external_id: with_id()?, name },
        "admin" | "team" => Author::Teammate { external_id: with_id()?, name },
        "bot" => Author::System { external_id: id, name },
        other => return Err(format!("its author is of type `{other}`, which Intercom does not document")),
    };
    Ok((author, None))
}

fn unmapped_bot(id: Option<&str>) -> String {
    let id = id.unwrap_or("ID");
    format!(
        "bot {id} wrote it: name the registered agent that it is, by --ai-agent or by --ai-author {id}=AGENT"
    )
}

fn timestamp_of(seconds: i64) -> Result<Timestamp, String> {
    Timestamp::from_millis(seconds.saturating_mul(1000))
        .map_err(|_| format!("{seconds} is no time in Unix seconds"))
}

#[cfg(test)]
mod tests;
