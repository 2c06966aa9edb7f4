//! A conversation as the scorer sees it: who speaks, what is the author's own text, and what items share.

mod excerpt;
mod identifiers;
mod own_text;
mod similarity;
mod words;

use std::borrow::Cow;

use assay_contracts::conversation::{Author, AuthorType, Conversation, Message, MessageKind};

pub(crate) use self::own_text::earlier_messages;
pub(crate) use self::similarity::shares_any;
pub(crate) use self::words::{composed, splits_word};

use self::excerpt::{Excerpt, share};
use self::similarity::overlap;
use self::words::Words;
use crate::injection::InjectionDetector;
use crate::language::{FunctionWords, Language};

/// A first message with fewer content words may be a greeting, which is no request.
const FEWEST_WORDS_OF_REQUEST: usize = 4;
/// From this share of common words on two messages are the same.
const SAME_WORDS: f64 = 0.8;

/// What an item is to the scorer. A comment is a note whoever wrote it.
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
    pub(crate) const fn answers(self) -> bool {
        matches!(self, Self::Ai | Self::Human)
    }

    /// Whether the item ends what the customer has to say at once: an answer, or an item of several actors.
    pub(crate) const fn speaks_to_customer(self) -> bool {
        matches!(self, Self::Ai | Self::Human | Self::Mixed)
    }

    /// Whether the customer never saw the item.
    pub(crate) const fn is_unseen(self) -> bool {
        matches!(self, Self::Note | Self::System)
    }
}

/// One item with what can be counted in it.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// What it is to the scorer.
    pub role: Role,
    /// As it was submitted.
    pub message: &'a Message,
    /// Its text, or the beginning and the end of a very long one.
    excerpt: Cow<'a, str>,
    /// Byte ranges of `excerpt` that quote earlier messages or sign the message.
    earlier: Vec<(usize, usize)>,
    /// Words of its own text.
    pub words: u32,
    content_words: Vec<u64>,
    /// Hashes of order numbers, e-mail addresses and the like, sorted.
    pub identifiers: Vec<u64>,
    /// Whether the text talks to an evaluator; nothing in it is ever good evidence.
    pub is_injected: bool,
}

impl<'a> Item<'a> {
    /// Reads at most `most` bytes of the message.
    pub(crate) fn read(message: &'a Message, most: usize, is_injected: bool) -> Self {
        let excerpt = Excerpt::of(&message.content, most).text;
        let earlier = earlier_messages(&excerpt);
        let words = Words::of(&own(&excerpt, &earlier));
        Self {
            role: Role::of(message),
            message,
            excerpt,
            earlier,
            words: words.count,
            content_words: words.content,
            identifiers: words.identifiers,
            is_injected,
        }
    }

    /// The author's own text, without quoted earlier messages and signatures.
    pub(crate) fn own_text(&self) -> Cow<'_, str> {
        own(&self.excerpt, &self.earlier)
    }
}

fn own<'t>(text: &'t str, earlier: &[(usize, usize)]) -> Cow<'t, str> {
    if earlier.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end) in earlier {
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
    /// Whether the subject talks to an evaluator; then it is not read.
    is_subject_injected: bool,
    /// Every item, in order.
    pub items: Vec<Item<'a>>,
    /// Indices of the customer's items, without those that talk to an evaluator.
    pub customer: Vec<usize>,
    /// Indices of the answers that the customer saw, without those that talk to an evaluator.
    pub answers: Vec<usize>,
    /// For each item the share of its words that it has in common with the closest earlier one of the same side, 0–1.
    pub likeness: Vec<f64>,
    /// Language of the customer's text.
    pub language: Language,
}

impl<'a> Transcript<'a> {
    /// Reads every item once.
    pub(crate) fn read(
        injections: &InjectionDetector,
        words: &FunctionWords,
        conversation: &'a Conversation,
    ) -> Self {
        // Notes and events have a share of their own: what the customer never saw takes no room from what they said.
        let share_of = |unseen: bool| {
            let texts =
                conversation.messages.iter().filter(|message| Role::of(message).is_unseen() == unseen);
            share(texts.map(|message| message.content.len()))
        };
        let (of_seen, of_unseen) = (share_of(false), share_of(true));
        let items: Vec<Item<'a>> = conversation
            .messages
            .iter()
            .map(|message| {
                let most = if Role::of(message).is_unseen() { of_unseen } else { of_seen };
                Item::read(message, most, injections.finds(&message.content))
            })
            .collect();
        let language = Language::of(words, &items);
        let customer = indices(&items, |role| role == Role::Customer);
        let answers = indices(&items, Role::answers);
        let mut likeness = vec![0.0; items.len()];
        for side in [&customer, &answers] {
            add_likeness(&items, side, &mut likeness);
        }
        let is_subject_injected =
            conversation.subject.as_deref().is_some_and(|subject| injections.finds(subject));
        Self { conversation, is_subject_injected, items, customer, answers, likeness, language }
    }

    /// The item at `index`, which comes from this transcript.
    pub(crate) fn item(&self, index: usize) -> Option<&Item<'a>> {
        self.items.get(index)
    }

    /// The customer's items.
    pub(crate) fn customer_items(&self) -> impl DoubleEndedIterator<Item = &Item<'a>> {
        self.customer.iter().filter_map(|index| self.items.get(*index))
    }

    /// The share of its words that the item has in common with the closest earlier one of the same side, 0–1.
    pub(crate) fn likeness(&self, index: usize) -> f64 {
        self.likeness.get(index).copied().unwrap_or(0.0)
    }

    /// Whether the customer's item at `index` says over again what they wrote first.
    pub(crate) fn says_first_request_again(&self, index: usize) -> bool {
        let first = self.customer.first().copied().filter(|first| *first < index);
        let words = |index: usize| self.item(index).map_or(&[][..], |item| &item.content_words);
        first.is_some_and(|first| {
            words(first).len() >= FEWEST_WORDS_OF_REQUEST && overlap(words(index), words(first)) > SAME_WORDS
        })
    }

    /// Whether an item of this role is there.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.items.iter().any(|item| item.role == role)
    }

    /// Whether a human left an internal note.
    pub(crate) fn has_human_note(&self) -> bool {
        let by_human = |item: &Item<'_>| item.message.author.author_type() == AuthorType::Teammate;
        self.items.iter().any(|item| item.role == Role::Note && by_human(item))
    }

    /// Whether the subject or any item talks to an evaluator.
    pub(crate) fn has_injection(&self) -> bool {
        self.is_subject_injected || self.items.iter().any(|item| item.is_injected)
    }

    /// The subject, unless it talks to an evaluator.
    pub(crate) fn subject(&self) -> Option<&str> {
        self.conversation.subject.as_deref().filter(|_| !self.is_subject_injected)
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
    let kept = items.iter().enumerate().filter(|(_, item)| keep(item.role) && !item.is_injected);
    kept.map(|(index, _)| index).collect()
}

/// How much each of these items shares with the closest earlier one of them.
fn add_likeness(items: &[Item<'_>], side: &[usize], likeness: &mut [f64]) {
    let words = |index: usize| items.get(index).map_or(&[][..], |item| &item.content_words);
    for (position, index) in side.iter().enumerate() {
        let earlier = side.iter().take(position);
        let closest = earlier.map(|earlier| overlap(words(*index), words(*earlier))).fold(0.0, f64::max);
        if let Some(slot) = likeness.get_mut(*index) {
            *slot = closest;
        }
    }
}
