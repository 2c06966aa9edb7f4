//! A conversation, read once: who speaks, what phrases stand where, and what each item shares with earlier ones.

mod excerpt;
mod identifiers;
mod language;
mod own_text;
mod pieces;
mod reading;
mod sentence_ends;
mod sentences;
mod similarity;

use assay_contracts::conversation::{Author, AuthorType, Conversation, Message, MessageKind};

pub(crate) use self::language::{Coverage, Language};
pub(crate) use self::own_text::Quoted;
pub(crate) use self::reading::{Found, Reading};
pub(crate) use self::sentences::sentence_around;
pub(crate) use self::similarity::{common, shares_any};

use self::excerpt::{Excerpt, share};
use self::similarity::overlap;
use crate::lexicon::{Group, Lexicon};

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
}

/// One item with what was read in it.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// What it is to the scorer.
    pub role: Role,
    /// As it was submitted.
    pub message: &'a Message,
    /// What stands in it.
    pub reading: Reading,
}

impl Item<'_> {
    /// The first find of `group`.
    pub(crate) fn first(&self, group: Group) -> Option<Found> {
        let found = if self.has(group) { self.reading.found.as_slice() } else { &[] };
        found.iter().copied().find(|found| found.group == group)
    }

    /// Whether a phrase of `group` stands in it.
    pub(crate) fn has(&self, group: Group) -> bool {
        self.reading.groups.holds(group)
    }

    /// How many phrases of `group` stand in it.
    pub(crate) fn count(&self, group: Group) -> usize {
        self.reading.found.iter().filter(|found| found.group == group).count()
    }

    /// Whether a phrase of any of `groups` stands in it.
    pub(crate) fn has_any(&self, groups: &[Group]) -> bool {
        self.reading.groups.holds_any(groups)
    }

    /// Whether the text talks to an evaluator; nothing in it is ever good evidence.
    pub(crate) fn is_injected(&self) -> bool {
        self.reading.injected
    }
}

/// A conversation that was read.
#[derive(Debug)]
pub(crate) struct Transcript<'a> {
    /// As it was submitted.
    pub conversation: &'a Conversation,
    /// Every item, in order.
    pub items: Vec<Item<'a>>,
    /// Indices of the customer's items that count as theirs (see [`Transcript::read`]).
    pub customer: Vec<usize>,
    /// The turn of each of `customer`, from 0: messages with no answer between them are one turn, so that it
    /// makes no difference in how many messages a customer says something.
    pub turns: Vec<usize>,
    /// Indices of the answers that the customer saw.
    pub answers: Vec<usize>,
    /// For each of `customer`: the share of its words that it has in common with the closest earlier one, 0–1.
    pub customer_likeness: Vec<f64>,
    /// The same for each of `answers`.
    pub answer_likeness: Vec<f64>,
    /// How many of `answers` were heard: the customer wrote after them, or it is the first answer of all. What
    /// comes later may count against a conversation, never for it.
    pub heard: usize,
    /// Language of the customer's text.
    pub language: Language,
}

impl<'a> Transcript<'a> {
    /// Reads every item once.
    ///
    /// A customer's item that talks to an evaluator is left out of `customer`, unless it complains: otherwise an
    /// injected text would move the end of the conversation and thin out complaints.
    pub(crate) fn read(lexicon: &Lexicon, conversation: &'a Conversation) -> Self {
        let most = share(conversation.messages.iter().map(|message| message.content.len()));
        let (mut items, excerpts): (Vec<Item<'a>>, Vec<Excerpt<'a>>) = conversation
            .messages
            .iter()
            .map(|message| {
                let excerpt = Excerpt::of(&message.content, most);
                let reading = Reading::of_words(lexicon, &excerpt.text);
                (Item { role: Role::of(message), message, reading }, excerpt)
            })
            .unzip();
        let language = Language::of(lexicon, &items);
        let mut hits = Vec::new();
        for (item, excerpt) in items.iter_mut().zip(&excerpts) {
            let read_in = language.to_read(lexicon, item);
            item.reading.find_phrases(lexicon, excerpt, read_in, &mut hits);
        }
        let customer: Vec<usize> = indices(&items, |item| {
            item.role == Role::Customer && (!item.is_injected() || item.has_any(COMPLAINTS))
        });
        let answers: Vec<usize> = indices(&items, |item| item.role.answers());
        let turns = turns(&customer, &answers);
        let last_customer = customer.last().copied().unwrap_or(0);
        let before_last = answers.iter().filter(|index| **index < last_customer).count();
        let heard = if before_last == 0 { answers.len().min(1) } else { before_last };
        let customer_likeness = likeness(&items, &customer);
        let answer_likeness = likeness(&items, &answers);
        Self {
            conversation,
            items,
            customer,
            turns,
            answers,
            customer_likeness,
            answer_likeness,
            heard,
            language,
        }
    }

    /// The item at `index`, which comes from this transcript.
    pub(crate) fn item(&self, index: usize) -> Option<&Item<'a>> {
        self.items.get(index)
    }

    /// How many turns the customer had.
    pub(crate) fn turn_count(&self) -> usize {
        self.turns.last().map_or(0, |last| last + 1)
    }

    /// The customer's items that count as theirs.
    pub(crate) fn customer_items(&self) -> impl DoubleEndedIterator<Item = &Item<'a>> {
        self.customer.iter().filter_map(|index| self.items.get(*index))
    }

    /// The customer's opening: what they write before the first answer to them.
    pub(crate) fn opening_items(&self) -> impl Iterator<Item = &Item<'a>> {
        let first_turn = self.turns.iter().filter(|turn| **turn == 0).count();
        self.customer_items().take(first_turn)
    }

    /// All answers that the customer saw.
    pub(crate) fn answer_items(&self) -> impl DoubleEndedIterator<Item = &Item<'a>> {
        self.answers.iter().filter_map(|index| self.items.get(*index))
    }

    /// The answers that the customer reacted to (see `heard`).
    pub(crate) fn heard_items(&self) -> impl DoubleEndedIterator<Item = &Item<'a>> {
        self.answers.iter().take(self.heard).filter_map(|index| self.items.get(*index))
    }

    /// What the customer reacts to at `index`: the last answer before it, or the last item with several actors,
    /// which may hold one.
    pub(crate) fn answer_before(&self, index: usize) -> Option<&Item<'a>> {
        self.items.iter().take(index).rfind(|item| item.role.answers() || item.role == Role::Mixed)
    }

    /// Whether an item of this role is there.
    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.items.iter().any(|item| item.role == role)
    }

    /// Whether any item talks to an evaluator.
    pub(crate) fn has_injection(&self) -> bool {
        self.items.iter().any(Item::is_injected)
    }
}

/// The groups that make a message a complaint.
pub(crate) const COMPLAINTS: &[Group] = &[
    Group::Rejection,
    Group::Negated,
    Group::Still,
    Group::Frustration,
    Group::Sarcasm,
    Group::HumanRequest,
    Group::GiveUp,
];

/// The ids of an AI author: service id, then the caller's.
pub(crate) fn ai_ids(author: &Author) -> Option<(Option<&str>, Option<&str>)> {
    match author {
        Author::Ai { id, external_id, .. } => Some((id.as_deref(), external_id.as_deref())),
        _ => None,
    }
}

fn indices(items: &[Item<'_>], keep: impl Fn(&Item<'_>) -> bool) -> Vec<usize> {
    items.iter().enumerate().filter(|(_, item)| keep(item)).map(|(index, _)| index).collect()
}

/// How much each of these items shares with the closest earlier one of them.
fn likeness(items: &[Item<'_>], indices: &[usize]) -> Vec<f64> {
    let words: Vec<&[u64]> = indices
        .iter()
        .map(|index| items.get(*index).map_or(&[][..], |item| &item.reading.content_words))
        .collect();
    words
        .iter()
        .enumerate()
        .map(|(position, own)| {
            words.iter().take(position).map(|earlier| overlap(own, earlier)).fold(0.0, f64::max)
        })
        .collect()
}

fn turns(customer: &[usize], answers: &[usize]) -> Vec<usize> {
    let mut turn = 0;
    let mut before: Option<usize> = None;
    customer
        .iter()
        .map(|index| {
            let was_answered =
                before.is_some_and(|before| answers.iter().any(|answer| (before..*index).contains(answer)));
            turn += usize::from(was_answered);
            before = Some(*index);
            turn
        })
        .collect()
}
