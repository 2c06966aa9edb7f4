//! The quotes of an evaluation: exact substrings with their byte offsets, each kept once.

use std::ops::Range;

use assay_contracts::evaluation::Evidence;

use crate::transcript::{Role, Transcript, quoted_replies_and_signatures};
use crate::word_boundary::splits_word;

/// Maximum length of a quote: enough for a sentence.
const MAX_QUOTE_BYTES: usize = 200;
/// A quote is cut at a word if a cut at a sentence end would make it shorter than this.
const MIN_SENTENCE_BYTES: usize = 60;

/// Collects quotes and hands out their indices.
#[derive(Debug)]
pub(crate) struct EvidenceCollector<'t, 'a> {
    transcript: &'t Transcript<'a>,
    quotes: Vec<Evidence>,
}

impl<'t, 'a> EvidenceCollector<'t, 'a> {
    /// An empty collector.
    pub(crate) const fn new(transcript: &'t Transcript<'a>) -> Self {
        Self { transcript, quotes: Vec::new() }
    }

    /// Quotes the item at `index`: in full if short; else the last sentences of a customer, who comes to the point
    /// at the end, and the first sentences of all others.
    pub(crate) fn quote(&mut self, index: usize) -> Option<usize> {
        let item = self.transcript.item(index)?;
        let content = item.message.content.as_str();
        let part = if item.role == Role::Customer { Part::Last } else { Part::First };
        let (start, end) = passage(content, part);
        let quote = content.get(start..end).filter(|quote| !quote.is_empty())?;
        let message_external_id = item.message.external_id.as_str();
        let author_type = item.message.author.author_type();
        // A message and a comment may have the same external id, and evidence does not say which it quotes: offsets and
        // text must agree, too.
        let known = self.quotes.iter().position(|known| {
            known.start == start
                && known.end == end
                && known.author_type == author_type
                && known.message_external_id == message_external_id
                && known.quote == quote
        });
        Some(known.unwrap_or_else(|| {
            let (message_external_id, quote) = (message_external_id.to_owned(), quote.to_owned());
            self.quotes.push(Evidence { message_external_id, author_type, quote, start, end });
            self.quotes.len() - 1
        }))
    }

    /// The quotes, in the order of their indices.
    pub(crate) fn into_evidence(self) -> Vec<Evidence> {
        self.quotes
    }
}

/// The part of a text that is quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Last,
}

/// The part of a text to be quoted, without outer spaces: at most [`MAX_QUOTE_BYTES`] bytes, cut at a sentence where that
/// leaves enough of it, else at a word. Only a word that is longer than a quote is cut in the middle.
fn passage(content: &str, part: Part) -> (usize, usize) {
    let (start, end) = own_part(content, part);
    let text = content.get(start..end).unwrap_or("");
    if text.len() <= MAX_QUOTE_BYTES {
        return (start, end);
    }
    let (from, to) = match part {
        Part::First => (0, first_part_end(text)),
        Part::Last => (last_part_start(text), text.len()),
    };
    trimmed(content, start + from, start + to)
}

/// The range without outer spaces.
fn trimmed(content: &str, start: usize, end: usize) -> (usize, usize) {
    let part = content.get(start..end).unwrap_or("");
    let from = start + part.len() - part.trim_start().len();
    (from, from + part.trim().len())
}

/// Offset at which the last part of a text begins.
fn last_part_start(text: &str) -> usize {
    let earliest = text.ceil_char_boundary(text.len() - MAX_QUOTE_BYTES);
    let rest = text.get(earliest..).unwrap_or("");
    let at_sentence = sentence_ends(rest).find(|at| *at + MIN_SENTENCE_BYTES <= rest.len());
    let at_word = || word_bounds(text, earliest..text.len()).next().map(|at| at - earliest);
    earliest + at_sentence.or_else(at_word).unwrap_or(0)
}

/// Offset at which the first part of a text ends.
fn first_part_end(text: &str) -> usize {
    let latest = text.floor_char_boundary(MAX_QUOTE_BYTES);
    let at_sentence =
        sentence_ends(text).take_while(|at| *at <= latest).filter(|at| *at >= MIN_SENTENCE_BYTES).last();
    let at_word = || word_bounds(text, 1..latest + 1).next_back();
    at_sentence.or_else(at_word).unwrap_or(latest)
}

/// Offsets in the range at which the text can be cut without cutting a word: at blanks; without blanks, wherever no word
/// is split.
fn word_bounds(text: &str, range: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
    let around = move |at: usize| Some((text.get(..at)?, text.get(at..)?));
    let is_blank = |text: &str| text.starts_with(char::is_whitespace);
    let has_blank = range.clone().filter_map(around).any(|(_, after)| is_blank(after));
    range.filter(move |at| {
        around(*at).is_some_and(|(before, after)| {
            let at_blank = is_blank(after) || before.ends_with(char::is_whitespace);
            if has_blank { at_blank } else { !splits_word(before, after) }
        })
    })
}

/// The first or last part of the text that is neither a quoted message nor a signature, without outer spaces; the whole text if
/// there is no such part.
fn own_part(content: &str, part: Part) -> (usize, usize) {
    let others = quoted_replies_and_signatures(content);
    let starts = std::iter::once(0).chain(others.iter().map(|(_, end)| *end));
    let ends = others.iter().map(|(start, _)| *start).chain([content.len()]);
    let parts = starts.zip(ends).map(|(start, end)| trimmed(content, start, end));
    let mut own = parts.filter(|(start, end)| start < end);
    let found = if part == Part::Last { own.last() } else { own.next() };
    found.unwrap_or_else(|| trimmed(content, 0, content.len()))
}

/// Offsets after marks that end a sentence. A full stop within an address or a number does not end one.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(move |(at, character)| {
        let after = at + character.len_utf8();
        let next = || text.get(after..).and_then(|rest| rest.chars().next());
        let ends = match character {
            '.' | '!' | '?' => next().is_none_or(char::is_whitespace),
            '\n' | '。' | '！' | '？' => true,
            _ => false,
        };
        ends.then_some(after)
    })
}

#[cfg(test)]
mod tests {
    use super::Part::{First, Last};
    use super::*;

    fn quoted(text: &str, part: Part) -> &str {
        let (start, end) = passage(text, part);
        &text[start..end]
    }

    #[test]
    fn short_message_is_quoted_without_signature() {
        assert_eq!(quoted("  No, that did not fix it! \n", Last), "No, that did not fix it!");
        assert_eq!(quoted("It works.\n\nKind regards,\nAnn", Last), "It works.");
        assert_eq!(quoted("> only a quote", First), "> only a quote");
    }

    #[test]
    fn quoted_messages_are_left_out() {
        let between = "Hello,\n> Please restart it\nDid that, still broken.\n> It is fixed now.\n";
        assert_eq!(quoted(between, Last), "Did that, still broken.");
        assert_eq!(quoted(between, First), "Hello,");
        assert_eq!(quoted("> It is fixed now.\nNo, it is not.", Last), "No, it is not.");
        assert_eq!(quoted("No, it is not.\n\n> It is fixed now.", Last), "No, it is not.");
    }

    #[test]
    fn number_is_not_cut_at_its_point() {
        let start = "a".repeat(60) + ". ";
        let text =
            start.clone() + &"b".repeat(MAX_QUOTE_BYTES - start.len() - 3) + " 2.5 and more of the same";
        assert_eq!(text.as_bytes()[MAX_QUOTE_BYTES - 1], b'.');
        assert!(!quoted(&text, First).ends_with("2."), "{}", quoted(&text, First));
    }

    #[test]
    fn long_message_is_quoted_at_sentence_ends() {
        let text = format!("First things first. {} And so it works now.", "Something happened. ".repeat(30));
        assert!(
            quoted(&text, Last).starts_with("Something happened.") && quoted(&text, Last).ends_with("now.")
        );
        assert!(quoted(&text, First).starts_with("First") && quoted(&text, First).ends_with("happened."));
        assert!(
            quoted(&text, First).len() <= MAX_QUOTE_BYTES && quoted(&text, Last).len() <= MAX_QUOTE_BYTES
        );
    }

    #[test]
    fn quote_without_sentences_ends_at_word_or_character() {
        let words = "word ".repeat(100);
        assert!(quoted(&words, First).ends_with("word") && quoted(&words, Last).starts_with("word"));
        let answer = "Thanks! But the printer ".to_owned() + &"still prints nothing ".repeat(9) + "at all";
        assert!(quoted(&answer, First).len() > 150, "a greeting alone says nothing");
        let chinese = "打印机还是不能用".repeat(40);
        assert!(quoted(&chinese, Last).len() > 150 && chinese.ends_with(quoted(&chinese, Last)));
        let letters = "é".repeat(1_000);
        assert!(quoted(&letters, Last).len() <= MAX_QUOTE_BYTES && !quoted(&letters, First).is_empty());
    }
}
