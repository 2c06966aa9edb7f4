//! The transcript of a conversation, with the quotes of the verdict marked and numbered in the order of the text.

use std::collections::BTreeMap;

use assay_contracts::conversation::{AuthorType, Message, MessageKind};
use assay_contracts::evaluation::{Evaluation, Evidence};
use assay_contracts::ids::TicketId;
use assay_contracts::validation::shortened;

use super::verdict::{Reason, reasons};
use crate::domain::{
    MAX_NAME_CHARACTERS, PART_BYTES, PageTime, Pairs, Quote, Run, Segment, max_bytes_per_text, part_ranges,
    runs, segments, with_query,
};

/// Maximum size of all texts of a page, in bytes: with these a page stays below 100 kB even if nothing can be compressed.
const MAX_TEXT_BYTES: usize = PART_BYTES;

/// One message.
pub(crate) struct Item {
    pub(crate) number: usize,
    /// `customer`, `ai`, `human`, `comment` or `event`.
    pub(crate) kind: &'static str,
    /// The kind of author in words; empty for an event.
    pub(crate) who: &'static str,
    pub(crate) name: Option<Vec<Run>>,
    /// Absent for the quote of an expired transcript.
    pub(crate) time: Option<PageTime>,
    pub(crate) segments: Vec<Segment>,
}

/// The addresses of the links of a transcript, with the query of the list that one came from. Templates pass numbers as references.
pub(crate) struct Links {
    path: String,
    list: Pairs,
    /// The page that has the reasons; empty on that page itself.
    reasons: String,
}

impl Links {
    /// Those on the page of a conversation.
    pub(crate) fn of_conversation(id: TicketId, list: Pairs) -> Self {
        Self { path: format!("/console/conversations/{id}"), list, reasons: String::new() }
    }

    /// Those on the page of a message, which shows no reasons.
    pub(crate) fn of_message(id: TicketId, list: Pairs) -> Self {
        let links = Self::of_conversation(id, list);
        Self { reasons: with_query(&links.path, &links.list), ..links }
    }

    /// A message on the page of its conversation.
    pub(crate) fn in_conversation(&self, number: usize) -> String {
        format!("{}#m{number}", with_query(&self.path, &self.list))
    }

    /// A part of a message, at the first of these quotes.
    pub(crate) fn message(&self, number: &usize, part: &usize, quotes: &[usize]) -> String {
        let mut pairs = self.list.clone();
        if *part > 1 {
            pairs.push(("part".to_owned(), part.to_string()));
        }
        let address = with_query(&format!("{}/messages/{number}", self.path), &pairs);
        match quotes.first() {
            Some(quote) => format!("{address}#q{quote}"),
            None => address,
        }
    }

    /// The first reason of a quote.
    pub(crate) fn reason(&self, quotes: &Quotes, number: &usize) -> String {
        format!("{}#{}", self.reasons, quotes.target(number))
    }
}

/// The number of each quote on the page, and the reasons that point to it.
pub(crate) struct Quotes {
    /// Numbers by index in the evidence.
    numbers: BTreeMap<usize, usize>,
    /// Anchors and texts of the reasons, by number of the quote.
    targets: BTreeMap<usize, Vec<(String, String)>>,
}

impl Quotes {
    /// Numbers the quotes that a reason points to and that lie in the transcript.
    pub(crate) fn of(messages: &[Message], evaluation: Option<&Evaluation>) -> Self {
        let Some(evaluation) = evaluation else {
            return Self { numbers: BTreeMap::new(), targets: BTreeMap::new() };
        };
        // Index of the message, first byte, index in the evidence: sorted, they have the order of the text.
        let mut found: Vec<(usize, usize, usize)> = evaluation
            .evidence
            .iter()
            .enumerate()
            .filter_map(|(index, evidence)| Some((message_of(messages, evidence)?, evidence.start, index)))
            .collect();
        found.sort_unstable();
        Self::numbered(found.into_iter().map(|(_, _, index)| index), evaluation)
    }

    /// Numbers the quotes of an evaluation whose transcript has expired, in the order of the evidence.
    pub(crate) fn without_transcript(evaluation: &Evaluation) -> Self {
        Self::numbered(0..evaluation.evidence.len(), evaluation)
    }

    /// Numbers those of these quotes, given by their index in the evidence, that a reason points to.
    fn numbered(order: impl Iterator<Item = usize>, evaluation: &Evaluation) -> Self {
        let reasons = reasons(evaluation);
        let is_used = |index: &usize| reasons.iter().any(|reason| reason.evidence.contains(index));
        let numbers: BTreeMap<usize, usize> = order.filter(is_used).zip(1..).collect();
        let targets = numbers.iter().map(|(index, number)| (*number, targets_of(*index, &reasons)));
        Self { targets: targets.collect(), numbers }
    }

    pub(crate) fn number_of(&self, index: usize) -> Option<usize> {
        self.numbers.get(&index).copied()
    }

    /// The anchor that a quote links to: that of its first reason.
    fn target(&self, number: &usize) -> &str {
        self.targets.get(number).and_then(|targets| targets.first()).map_or("", |(anchor, _)| anchor)
    }

    /// The texts of all reasons of a quote.
    pub(crate) fn title(&self, number: &usize) -> String {
        let targets = self.targets.get(number).map(Vec::as_slice).unwrap_or_default();
        targets.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("; ")
    }
}

fn targets_of(index: usize, reasons: &[Reason]) -> Vec<(String, String)> {
    let pointing = reasons.iter().filter(|reason| reason.evidence.contains(&index));
    pointing.map(|reason| (reason.anchor.clone(), reason.text.clone())).collect()
}

/// The index of the message that the evidence quotes; `None` if its text is not there.
fn message_of(messages: &[Message], evidence: &Evidence) -> Option<usize> {
    messages.iter().position(|message| {
        // Ids are unique only among messages of the same kind.
        message.external_id == evidence.message_external_id
            && message.author.author_type() == evidence.author_type
            && message.content.get(evidence.start..evidence.end) == Some(evidence.quote.as_str())
    })
}

/// The items of a transcript; long messages are cut.
pub(crate) fn items(messages: &[Message], evaluation: Option<&Evaluation>, quotes: &Quotes) -> Vec<Item> {
    let lengths: Vec<usize> = messages.iter().map(|message| message.content.len()).collect();
    let limit = max_bytes_per_text(&lengths, MAX_TEXT_BYTES);
    let all = messages.iter().enumerate();
    all.map(|(index, message)| {
        let quotes_here = quotes_in(index, messages, evaluation, quotes);
        item(index, message, segments(&message.content, &quotes_here, limit))
    })
    .collect()
}

/// The quotes of an evaluation whose transcript has expired; long ones are cut.
pub(crate) fn items_of_quotes(evaluation: &Evaluation, quotes: &Quotes) -> Vec<Item> {
    let lengths: Vec<usize> = evaluation.evidence.iter().map(|evidence| evidence.quote.len()).collect();
    // A character has up to four bytes.
    let max_characters = max_bytes_per_text(&lengths, MAX_TEXT_BYTES) / 4;
    let numbered = evaluation.evidence.iter().enumerate();
    let numbered = numbered.filter_map(|(index, evidence)| Some((quotes.number_of(index)?, evidence)));
    let quote = |(number, evidence): (usize, &Evidence)| {
        let (kind, who) = author(evidence.author_type);
        let text = runs(&shortened(&evidence.quote, max_characters));
        let segments = vec![Segment::Marked { numbers: vec![number], text }];
        Item { number, kind, who, name: None, time: None, segments }
    };
    numbered.map(quote).collect()
}

/// A part of one message, for its own page.
pub(crate) struct MessagePart {
    pub(crate) item: Item,
    pub(crate) part_count: usize,
}

/// Part `part`, from 1, of the message with this index; `None` if there is none.
pub(crate) fn message_part(
    messages: &[Message],
    evaluation: Option<&Evaluation>,
    quotes: &Quotes,
    index: usize,
    part: usize,
) -> Option<MessagePart> {
    let message = messages.get(index)?;
    let parts = part_ranges(&message.content, PART_BYTES);
    let shown = parts.get(part.checked_sub(1)?)?.clone();
    let quotes_here = quotes_in(index, messages, evaluation, quotes).into_iter().filter_map(|quote| {
        let (start, end) = (quote.bytes.start.max(shown.start), quote.bytes.end.min(shown.end));
        (start < end).then(|| Quote { bytes: start - shown.start..end - shown.start, ..quote })
    });
    let quotes_here: Vec<Quote> = quotes_here.collect();
    let segments = segments(&message.content[shown], &quotes_here, PART_BYTES);
    Some(MessagePart { item: item(index, message, segments), part_count: parts.len() })
}

/// The numbered quotes in the message with this index.
fn quotes_in(
    index: usize,
    messages: &[Message],
    evaluation: Option<&Evaluation>,
    quotes: &Quotes,
) -> Vec<Quote> {
    let evidence = evaluation.iter().flat_map(|evaluation| &evaluation.evidence).enumerate();
    evidence
        .filter(|(_, evidence)| message_of(messages, evidence) == Some(index))
        .filter_map(|(evidence_index, evidence)| {
            let number = quotes.number_of(evidence_index)?;
            Some(Quote { number, bytes: evidence.start..evidence.end })
        })
        .collect()
}

fn item(index: usize, message: &Message, segments: Vec<Segment>) -> Item {
    let (kind, who) = match message.kind {
        MessageKind::Comment => ("comment", "Internal comment"),
        MessageKind::Message => author(message.author.author_type()),
    };
    let name = message.author.name().map(|name| shortened(name, MAX_NAME_CHARACTERS));
    Item {
        number: index + 1,
        kind,
        who,
        name: name.filter(|name| !name.trim().is_empty()).map(|name| runs(&name)),
        time: Some(PageTime::short(message.timestamp)),
        segments,
    }
}

/// The kind of an item by its author, and the author in words.
fn author(author: AuthorType) -> (&'static str, &'static str) {
    match author {
        AuthorType::Contact => ("customer", "Customer"),
        AuthorType::Ai => ("ai", "AI agent"),
        AuthorType::Teammate => ("human", "Teammate"),
        AuthorType::System => ("event", ""),
        AuthorType::Mixed => ("human", "Several authors"),
    }
}
