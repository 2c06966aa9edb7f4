//! Parsing and validation of the body of `POST /v1/assess`.

use std::collections::HashSet;

use super::{Author, AuthorType, Conversation, DEFAULT_SOURCE, MAX_MESSAGES, Message, MessageKind};
use crate::json::{ObjectReader, Tree, ValidationErrors, parse_tree};
use crate::time::Timestamp;
use crate::validation::BodyError;

/// Names of the fields that are read, at any depth; other fields are skipped.
const FIELDS: [&str; 14] = [
    "ticket_id",
    "source",
    "source_account_id",
    "subject",
    "messages",
    "content",
    "external_id",
    "timestamp",
    "kind",
    "ai_tool",
    "author",
    "type",
    "name",
    "id",
];

impl Conversation {
    /// Reads and checks a request body.
    ///
    /// # Errors
    /// [`BodyError`] with all validation errors, at most [`crate::validation::MAX_REPORTED_ERRORS`].
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_tree(body, &FIELDS)?;
        let mut errors = ValidationErrors::default();
        let conversation = read_conversation(tree, &mut errors);
        errors.finish(conversation)
    }
}

fn read_conversation(tree: Tree<'_>, errors: &mut ValidationErrors) -> Option<Conversation> {
    let mut object = ObjectReader::new(tree, "", errors)?;
    let ticket_id = object.required_short_text("ticket_id");
    let source = object.optional_short_text("source").unwrap_or_else(|| DEFAULT_SOURCE.to_owned());
    let source_account_id = object.optional_short_text("source_account_id");
    let subject = object.optional_free_text("subject");
    let messages = object.required("messages")?;
    let messages = read_messages(messages, object.errors());
    Some(Conversation { ticket_id: ticket_id?, source, source_account_id, subject, messages: messages? })
}

fn read_messages(value: Tree<'_>, errors: &mut ValidationErrors) -> Option<Vec<Message>> {
    let items = match value {
        Tree::Array(items) => items,
        other => {
            errors.add("/messages", format!("must be an array, not {}", other.kind()));
            return None;
        }
    };
    if items.is_empty() || items.len() > MAX_MESSAGES {
        let count = items.len();
        errors.add("/messages", format!("must hold 1 to {MAX_MESSAGES} messages, not {count}"));
        return None;
    }
    let mut rules = CrossMessageRules::default();
    let mut messages = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        if errors.is_full() {
            return None;
        }
        messages.push(read_message(item, index, &mut rules, errors));
    }
    messages.into_iter().collect()
}

/// State of the rules across messages, which are checked even if a message has other errors.
#[derive(Default)]
struct CrossMessageRules {
    latest: Option<i64>,
    ids: HashSet<(MessageKind, String)>,
}

impl CrossMessageRules {
    /// Messages are in chronological order; equal timestamps are allowed.
    fn check_timestamp(&mut self, timestamp: i64, message: &mut ObjectReader<'_, '_>) {
        if self.latest.is_some_and(|latest| timestamp < latest) {
            message.add_error(
                "timestamp",
                "must not be earlier than that of a message before it: messages are in chronological order",
            );
        }
        self.latest = self.latest.max(Some(timestamp));
    }

    /// An external id is unique among the messages of a kind.
    fn check_external_id(
        &mut self,
        kind: MessageKind,
        external_id: &str,
        message: &mut ObjectReader<'_, '_>,
    ) {
        if !self.ids.insert((kind, external_id.to_owned())) {
            message.add_error("external_id", "must be unique among the messages of the same kind");
        }
    }
}

fn read_message(
    item: Tree<'_>,
    index: usize,
    rules: &mut CrossMessageRules,
    errors: &mut ValidationErrors,
) -> Option<Message> {
    let mut object = ObjectReader::new(item, format!("/messages/{index}"), errors)?;
    let content = object.required_text("content");
    let external_id = object.required_short_text("external_id");
    let timestamp = object.required("timestamp").and_then(|value| {
        object.integer("timestamp", &value, Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis())
    });
    let kind = read_kind(&mut object);
    if let Some(timestamp) = timestamp {
        rules.check_timestamp(timestamp, &mut object);
    }
    if let (Some(kind), Some(external_id)) = (kind, &external_id) {
        rules.check_external_id(kind, external_id, &mut object);
    }
    let author = object.required("author");
    let author =
        author.and_then(|value| read_author(value, &object.pointer_to("author"), object.errors()))?;
    // `ai_tool` is ignored on messages of other authors.
    let ai_tool = match author.author_type() {
        AuthorType::Ai => object.optional_choice("ai_tool"),
        _ => None,
    };
    Some(Message {
        content: content?,
        external_id: external_id?,
        timestamp: Timestamp::saturating_from_millis(timestamp?),
        kind: kind?,
        ai_tool,
        author,
    })
}

/// Defaults to `message`; `None` for an invalid value.
fn read_kind(message: &mut ObjectReader<'_, '_>) -> Option<MessageKind> {
    let Some(value) = message.take("kind") else { return Some(MessageKind::Message) };
    message.choice("kind", value)
}

fn read_author(value: Tree<'_>, pointer: &str, errors: &mut ValidationErrors) -> Option<Author> {
    let mut object = ObjectReader::new(value, pointer, errors)?;
    match object.required_choice::<AuthorType>("type")? {
        AuthorType::Contact => {
            let external_id = object.required_short_text("external_id");
            let name = object.optional_short_text("name");
            Some(Author::Contact { external_id: external_id?, name })
        }
        AuthorType::Teammate => {
            let external_id = object.required_short_text("external_id");
            let name = object.optional_short_text("name");
            Some(Author::Teammate { external_id: external_id?, name })
        }
        AuthorType::Ai => read_ai_author(object, pointer),
        AuthorType::System => {
            let external_id = object.optional_short_text("external_id");
            Some(Author::System { external_id, name: object.optional_short_text("name") })
        }
        AuthorType::Mixed => {
            // Validated, then dropped: a mixed author has no name.
            object.optional_short_text("name");
            Some(Author::Mixed)
        }
    }
}

fn read_ai_author(mut object: ObjectReader<'_, '_>, pointer: &str) -> Option<Author> {
    let id = object.take("id");
    let external_id = object.take("external_id");
    if id.is_none() && external_id.is_none() {
        object.errors().add(pointer, "an `ai` author needs `id` or `external_id`");
    }
    let id = id.and_then(|value| object.short_text_of("id", value));
    let external_id = external_id.and_then(|value| object.short_text_of("external_id", value));
    let name = object.optional_short_text("name");
    // Incomplete after an error: `finish` then refuses the whole body.
    Some(Author::Ai { id, external_id, name })
}
