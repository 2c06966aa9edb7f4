//! The parsed conversation: roles, the author's own text, and similarity of items.

mod excerpt;
mod identifiers;
mod own_text;
mod similarity;
mod words;

use std::borrow::Cow;

use assay_contracts::conversation::{Author, AuthorType, Conversation, Message, MessageKind};

pub(crate) use self::own_text::quoted_replies_and_signatures;
pub(crate) use self::similarity::shares_any;
pub(crate) use self::words::nfc;

use self::excerpt::{byte_budget, excerpt};
use self::similarity::overlap;
use self::words::Words;
use crate::injection::InjectionDetector;

/// Minimum content words of a request: a shorter first message may be a greeting.
const MIN_REQUEST_WORDS: usize = 4;
/// Minimum word overlap of a repeated request.
const SAME_REQUEST_OVERLAP: f64 = 0.8;

/// Role of an item. An internal comment is a note, whichever type its author has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Customer,
    Ai,
    Human,
    System,
    Mixed,
    Note,
}

impl Role {
    fn of(message: &Message) -> Self {
        match (message.kind, message.author.author_type()) {
            (MessageKind::Comment, _) => Self::Note,
            (MessageKind::Message, AuthorType::Contact) => Self::Customer,
            (MessageKind::Message, AuthorType::Ai) => Self::Ai,
            (MessageKind::Message, AuthorType::Teammate) => Self::Human,
            (MessageKind::Message, AuthorType::System) => Self::System,
            (MessageKind::Message, AuthorType::Mixed) => Self::Mixed,
        }
    }

    /// Whether the item is an answer that the customer saw.
    pub(crate) const fn is_answer(self) -> bool {
        matches!(self, Self::Ai | Self::Human)
    }

    /// Whether the item ends a turn of the customer: an answer, or an item of several authors.
    pub(crate) const fn ends_customer_turn(self) -> bool {
        matches!(self, Self::Ai | Self::Human | Self::Mixed)
    }

    /// Whether the customer never saw the item.
    pub(crate) const fn is_hidden_from_customer(self) -> bool {
        matches!(self, Self::Note | Self::System)
    }
}

/// A message, internal note or system event of the conversation, with its text statistics.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// Role of the item.
    pub role: Role,
    /// As it was submitted.
    pub message: &'a Message,
    /// Its text, or the start and the end of a very long one.
    excerpt: Cow<'a, str>,
    /// Byte ranges of `excerpt` that are quotes or signatures.
    excluded: Vec<(usize, usize)>,
    /// Words of its own text.
    pub word_count: u32,
    content_words: Vec<u64>,
    /// Hashes of order numbers, e-mail addresses and the like, sorted.
    pub identifiers: Vec<u64>,
    /// Whether the text is a prompt injection, which is never evidence in favour of an agent.
    pub is_injection: bool,
}

impl<'a> Item<'a> {
    /// Parses at most `max_bytes` bytes of the message.
    pub(crate) fn read(message: &'a Message, max_bytes: usize, is_injection: bool) -> Self {
        let excerpt = excerpt(&message.content, max_bytes);
        let role = Role::of(message);
        // An item of several people is a whole thread: what looks quoted in it was written there.
        let excluded = if role == Role::Mixed { Vec::new() } else { quoted_replies_and_signatures(&excerpt) };
        let words = Words::of(&without_ranges(&excerpt, &excluded));
        Self {
            role,
            message,
            excerpt,
            excluded,
            word_count: words.count,
            content_words: words.content,
            identifiers: words.identifiers,
            is_injection,
        }
    }

    /// The author's own text, without quoted earlier messages and signatures.
    pub(crate) fn own_text(&self) -> Cow<'_, str> {
        without_ranges(&self.excerpt, &self.excluded)
    }
}

fn without_ranges<'t>(text: &'t str, excluded: &[(usize, usize)]) -> Cow<'t, str> {
    if excluded.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in excluded {
        rest.push_str(text.get(from..*start).unwrap_or(""));
        from = *end;
    }
    rest.push_str(text.get(from..).unwrap_or(""));
    Cow::Owned(rest)
}

/// A conversation with its items.
#[derive(Debug)]
pub(crate) struct Transcript<'a> {
    /// As it was submitted.
    pub conversation: &'a Conversation,
    /// Whether the subject is a prompt injection; then it is not read.
    is_subject_injection: bool,
    /// Every item, in order.
    pub items: Vec<Item<'a>>,
    /// Indices of the customer's items, without prompt injections.
    pub customer: Vec<usize>,
    /// Indices of the answers that the customer saw, without prompt injections.
    pub answers: Vec<usize>,
    /// For each item the word overlap with the most similar earlier one of its side (customer or answers), 0–1.
    pub similarity: Vec<f64>,
}

impl<'a> Transcript<'a> {
    /// Parses every item once.
    pub(crate) fn read(injections: &InjectionDetector, conversation: &'a Conversation) -> Self {
        // Notes and events have a separate budget, so that they never displace text that the customer saw.
        let budget_of = |is_hidden: bool| {
            let texts = conversation
                .messages
                .iter()
                .filter(|message| Role::of(message).is_hidden_from_customer() == is_hidden);
            byte_budget(texts.map(|message| message.content.len()))
        };
        let (visible_budget, hidden_budget) = (budget_of(false), budget_of(true));
        let items: Vec<Item<'a>> = conversation
            .messages
            .iter()
            .map(|message| {
                let max_bytes =
                    if Role::of(message).is_hidden_from_customer() { hidden_budget } else { visible_budget };
                Item::read(message, max_bytes, injections.finds_in(message))
            })
            .collect();
        let customer = indices(&items, |role| role == Role::Customer);
        let answers = indices(&items, Role::is_answer);
        let mut similarity = vec![0.0; items.len()];
        for side in [&customer, &answers] {
            fill_similarity(&items, side, &mut similarity);
        }
        let is_subject_injection =
            conversation.subject.as_deref().is_some_and(|subject| injections.finds(subject));
        Self { conversation, is_subject_injection, items, customer, answers, similarity }
    }

    /// The item at `index`, which comes from this transcript.
    pub(crate) fn item(&self, index: usize) -> Option<&Item<'a>> {
        self.items.get(index)
    }

    /// The customer's items.
    pub(crate) fn customer_items(&self) -> impl DoubleEndedIterator<Item = &Item<'a>> {
        self.customer.iter().filter_map(|index| self.items.get(*index))
    }

    /// Word overlap of the item with the most similar earlier one of the same side, 0–1.
    pub(crate) fn similarity(&self, index: usize) -> f64 {
        self.similarity.get(index).copied().unwrap_or(0.0)
    }

    /// Whether the customer's item at `index` has more than this share of its words in common with an earlier one. With few words
    /// nearly all must be the same; one word ("yes", "done") is never a repetition.
    pub(crate) fn repeats_words(&self, index: usize, min_overlap: f64) -> bool {
        let threshold = match self.item(index).map_or(0, |item| item.content_words.len()) {
            0 | 1 => return false,
            2..MIN_REQUEST_WORDS => min_overlap.max(SAME_REQUEST_OVERLAP),
            _ => min_overlap,
        };
        self.similarity(index) > threshold
    }

    /// Whether the customer's item at `index` repeats their first request.
    pub(crate) fn repeats_first_request(&self, index: usize) -> bool {
        let first = self.customer.first().copied().filter(|first| *first < index);
        let words = |index: usize| self.item(index).map_or(&[][..], |item| &item.content_words);
        first.is_some_and(|first| {
            words(first).len() >= MIN_REQUEST_WORDS
                && overlap(words(index), words(first)) > SAME_REQUEST_OVERLAP
        })
    }

    /// Whether the customer wrote after the first answer.
    pub(crate) fn customer_replied(&self) -> bool {
        let first_answer = self.answers.first();
        first_answer.is_some_and(|answer| self.customer.last().is_some_and(|last| answer < last))
    }

    /// Whether any item has this role.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.items.iter().any(|item| item.role == role)
    }

    /// Whether a human left an internal note.
    pub(crate) fn has_human_note(&self) -> bool {
        let by_human = |item: &Item<'_>| item.message.author.author_type() == AuthorType::Teammate;
        self.items.iter().any(|item| item.role == Role::Note && by_human(item))
    }

    /// Whether the subject or any item is a prompt injection.
    pub(crate) fn has_injection(&self) -> bool {
        self.is_subject_injection || self.items.iter().any(|item| item.is_injection)
    }

    /// The subject, unless it is a prompt injection.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.conversation.subject.as_deref().filter(|_| !self.is_subject_injection)
    }
}

/// The ids of an AI author: service id, then the caller's.
pub(crate) fn ai_ids(author: &Author) -> Option<(Option<&str>, Option<&str>)> {
    match author {
        Author::Ai { id, external_id, .. } => Some((id.as_deref(), external_id.as_deref())),
        _ => None,
    }
}

fn indices(items: &[Item<'_>], keep: impl Fn(Role) -> bool) -> Vec<usize> {
    let kept = items.iter().enumerate().filter(|(_, item)| keep(item.role) && !item.is_injection);
    kept.map(|(index, _)| index).collect()
}

/// Fills in the overlap of each item with the most similar earlier one of its side.
fn fill_similarity(items: &[Item<'_>], side: &[usize], similarity: &mut [f64]) {
    let words = |index: usize| items.get(index).map_or(&[][..], |item| &item.content_words);
    for (position, index) in side.iter().enumerate() {
        let earlier = side.iter().take(position);
        let closest = earlier.map(|earlier| overlap(words(*index), words(*earlier))).fold(0.0, f64::max);
        if let Some(slot) = similarity.get_mut(*index) {
            *slot = closest;
        }
    }
}
