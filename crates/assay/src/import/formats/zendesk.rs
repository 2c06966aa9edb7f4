//! Zendesk: tickets with their comments, as returned by its Support API (developer.zendesk.com, pages "Tickets", "Ticket
//! Comments", "Users", "Side-Loading" and "Incremental Exports").
//!
//! One conversation is either what "Show Ticket" and "List Comments" (with `include=users`) answer, put into one object,
//! `{"ticket": {…}, "comments": […], "users": […]}`, or a ticket with a member `comments`. Several of them may come in
//! an array, or as a page `{"tickets": […], "users": […]}`, whose `users` apply to all of its tickets.
//!
//! - A comment with `public: false` is an internal comment, any other a message.
//! - The author is an AI agent when `--ai-author` has its id; the customer when it is the ticket's requester, or a user whose
//!   `role` is `end-user`; a teammate when the role is `agent` or `admin`; the system when the id is -1, as in Zendesk.
//! - The text is `plain_body`, else `body`, else that of `html_body`.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use assay_contracts::conversation::{Author, Message, MessageKind};
use assay_contracts::time::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::html::text_of;
use super::{AiAuthors, Converted, Draft, Id, Mapping, Request, attachments_text, parse};

const SOURCE: &str = "zendesk";

/// Author of Zendesk's own events.
const SYSTEM_AUTHOR: &str = "-1";

#[derive(Deserialize)]
struct Ticket {
    id: Id,
    subject: Option<String>,
    requester_id: Option<Id>,
    /// Some exports embed users in the ticket.
    requester: Option<User>,
    submitter: Option<User>,
    assignee: Option<User>,
    comments: Option<Vec<Comment>>,
}

#[derive(Deserialize)]
struct Comment {
    id: Id,
    author_id: Option<Id>,
    created_at: String,
    public: Option<bool>,
    plain_body: Option<String>,
    body: Option<String>,
    html_body: Option<String>,
    attachments: Option<Vec<Attachment>>,
}

#[derive(Deserialize)]
struct Attachment {
    file_name: Option<String>,
}

#[derive(Deserialize, Clone)]
struct User {
    id: Id,
    name: Option<String>,
    role: Option<String>,
}

pub fn convert(line: Vec<u8>, mapping: &Mapping) -> Vec<Converted> {
    // A page lists its users once for all of its tickets, so parse them once.
    let users: OnceCell<Result<Users, String>> = OnceCell::new();
    parse(line, "tickets", |item, page| {
        let page_users = users.get_or_init(|| read_users(&page["users"])).as_ref().map_err(String::clone)?;
        request_of(item, page_users, mapping)
    })
}

/// Users by their ids.
type Users = BTreeMap<String, User>;

fn read_users(users: &Value) -> Result<Users, String> {
    let users = read::<Option<Vec<User>>>(users, "users")?.unwrap_or_default();
    Ok(users.into_iter().map(|user| (user.id.text(), user)).collect())
}

fn request_of(mut item: Value, page_users: &Users, mapping: &Mapping) -> Result<Request, String> {
    if !item.is_object() {
        return Err("it is no JSON object".to_owned());
    }
    let (comments, users) = (item["comments"].take(), item["users"].take());
    let ticket = match item.get_mut("ticket") {
        Some(ticket) => ticket.take(),
        None => item,
    };
    if !ticket.is_object() {
        return Err("it is no ticket: `ticket` or a ticket's own members are expected".to_owned());
    }
    let mut ticket: Ticket = read(&ticket, "ticket")?;
    let comments: Option<Vec<Comment>> = read(&comments, "comments")?;
    let comments = comments.or_else(|| ticket.comments.take());
    let comments = comments.ok_or_else(|| {
        format!("ticket {} has no `comments`: add those of \"List Comments\" to it", ticket.id.text())
    })?;
    let mut people = People::new(&ticket, page_users, &mapping.ai);
    people.add(read::<Option<Vec<User>>>(&users, "users")?.unwrap_or_default());
    let mut draft = Draft {
        ticket_id: ticket.id.text(),
        subject: ticket.subject,
        messages: Vec::new(),
        notices: Vec::new(),
    };
    for comment in comments {
        let id = comment.id.text();
        match message_of(comment, &people)? {
            Some(message) => draft.messages.push(message),
            None => draft.notices.push(format!("comment {id} has no text and was left out")),
        }
    }
    draft.into_request(SOURCE, mapping.account.as_deref())
}

fn read<'v, T: Deserialize<'v>>(value: &'v Value, what: &str) -> Result<T, String> {
    T::deserialize(value).map_err(|error| format!("its `{what}` is not as in Zendesk's API: {error}"))
}

fn message_of(comment: Comment, people: &People<'_>) -> Result<Option<Message>, String> {
    let external_id = comment.id.text();
    let timestamp = Timestamp::parse(&comment.created_at)
        .map_err(|error| format!("comment {external_id}: created_at `{}` {error}", comment.created_at))?;
    let text = text_in(&comment);
    if text.is_empty() {
        return Ok(None);
    }
    let author_id =
        comment.author_id.ok_or_else(|| format!("comment {external_id} has no author_id"))?.into_text();
    let author = people.author(&author_id).map_err(|reason| format!("comment {external_id}: {reason}"))?;
    let ai_tool = people.ai.tool.filter(|_| matches!(author, Author::Ai { .. }));
    let kind = if comment.public == Some(false) { MessageKind::Comment } else { MessageKind::Message };
    Ok(Some(Message { author, content: text, external_id, timestamp, kind, ai_tool }))
}

fn text_in(comment: &Comment) -> String {
    let plain = [&comment.plain_body, &comment.body].into_iter().flatten();
    let text = plain
        // Zendesk leaves this reference in the plain text of rich comments.
        .map(|text| text.replace("&nbsp;", " ").trim().to_owned())
        .find(|text| !text.is_empty())
        .or_else(|| comment.html_body.as_deref().map(text_of))
        .unwrap_or_default();
    if !text.is_empty() {
        return text;
    }
    let attachments = comment.attachments.iter().flatten();
    attachments_text(attachments.map(|file| file.file_name.as_deref().unwrap_or("file")))
}

struct People<'a> {
    ai: &'a AiAuthors,
    requester: Option<String>,
    /// Users of this conversation: those embedded in the ticket and those beside it.
    known: Users,
    page_users: &'a Users,
}

impl<'a> People<'a> {
    fn new(ticket: &Ticket, page_users: &'a Users, ai: &'a AiAuthors) -> Self {
        let requester = ticket.requester_id.as_ref().or(ticket.requester.as_ref().map(|user| &user.id));
        let mut people = Self { ai, requester: requester.map(Id::text), known: Users::new(), page_users };
        let named = [&ticket.requester, &ticket.submitter, &ticket.assignee];
        people.add(named.into_iter().flatten().cloned().collect());
        people
    }

    fn add(&mut self, users: Vec<User>) {
        for user in users {
            let id = user.id.text();
            // Prefer the entry that has a role.
            if user.role.is_some() || !self.known.contains_key(&id) {
                self.known.insert(id, user);
            }
        }
    }

    /// The ticket's entry, unless only the page's entry has a role.
    fn user(&self, id: &str) -> Option<&User> {
        let (from_ticket, from_page) = (self.known.get(id), self.page_users.get(id));
        from_ticket.filter(|user| user.role.is_some()).or(from_page).or(from_ticket)
    }

    fn author(&self, id: &str) -> Result<Author, String> {
        let user = self.user(id);
        let name = user.and_then(|user| user.name.clone()).filter(|name| !name.trim().is_empty());
        let external_id = id.to_owned();
        if let Some(agent) = self.ai.agents.get(id) {
            return Ok(Author::Ai { id: None, external_id: Some(agent.clone()), name });
        }
        if id == SYSTEM_AUTHOR {
            return Ok(Author::System { external_id: None, name: None });
        }
        // Before the role: a teammate who is the requester is the customer of this ticket.
        if self.requester.as_deref() == Some(id) {
            return Ok(Author::Contact { external_id, name });
        }
        match user.and_then(|user| user.role.as_deref()) {
            Some("end-user") => Ok(Author::Contact { external_id, name }),
            Some("agent" | "admin") => Ok(Author::Teammate { external_id, name }),
            Some(other) => Err(format!("user {id} has the role `{other}`, which Zendesk does not document")),
            None => Err(format!(
                "author {id} is not the requester, and `users` does not tell the role: ask for comments with include=users"
            )),
        }
    }
}

#[cfg(test)]
mod tests;
