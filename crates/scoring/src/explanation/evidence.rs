//! The quotes of an evaluation: exact substrings with their byte offsets, each kept once.

use assay_contracts::evaluation::Evidence;

use crate::transcript::{Found, Transcript};

/// A quote is at most so many bytes: enough for a sentence.
const LONGEST_QUOTE: usize = 200;

/// Collects quotes and hands out their indices.
#[derive(Debug)]
pub(crate) struct EvidenceBook<'t, 'a> {
    transcript: &'t Transcript<'a>,
    quotes: Vec<Evidence>,
}

impl<'t, 'a> EvidenceBook<'t, 'a> {
    /// An empty book.
    pub(crate) const fn new(transcript: &'t Transcript<'a>) -> Self {
        Self { transcript, quotes: Vec::new() }
    }

    /// Quotes the sentence around `phrase` in the item at `index`; its beginning without a phrase.
    pub(crate) fn quote(&mut self, index: usize, phrase: Option<Found>) -> Option<usize> {
        let item = self.transcript.item(index)?;
        let content = item.message.content.as_str();
        let around = phrase.map_or_else(|| first_character(content), |found| (found.start, found.end));
        let (start, end) = sentence(content, around.0, around.1);
        let quote = content.get(start..end).filter(|quote| !quote.is_empty())?;
        let message_external_id = item.message.external_id.as_str();
        let author_type = item.message.author.author_type();
        // The kind is not in the evidence, and ids are unique only per kind: offsets and text must agree, too.
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

fn first_character(content: &str) -> (usize, usize) {
    let start = content.len() - content.trim_start().len();
    let length = content.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    (start, start + length)
}

/// The sentence around `start..end`, cut to [`LONGEST_QUOTE`] at character boundaries, without outer spaces.
fn sentence(content: &str, start: usize, end: usize) -> (usize, usize) {
    let half = LONGEST_QUOTE.saturating_sub(end - start) / 2;
    let floor = ceil_boundary(content, start.saturating_sub(half)).min(start);
    let ceiling = floor_boundary(content, (end + half).min(content.len())).max(end);
    let begin = sentence_ends(content, floor, start).last().unwrap_or(floor);
    // From the phrase's last character on, which may itself end the sentence.
    let last =
        content.get(start..end).and_then(|phrase| phrase.chars().next_back()).map_or(0, char::len_utf8);
    let finish = sentence_ends(content, end - last, ceiling).next().unwrap_or(ceiling);
    let quote = content.get(begin..finish).unwrap_or("");
    let begin = begin + (quote.len() - quote.trim_start().len());
    (begin, begin + quote.trim().len())
}

/// Offsets behind marks that end a sentence between `from` and `to`. A full stop inside of an address or a number
/// ends none.
fn sentence_ends(content: &str, from: usize, to: usize) -> impl Iterator<Item = usize> {
    let part = content.get(from..to).unwrap_or("");
    part.char_indices().filter_map(move |(at, character)| {
        let behind = from + at + character.len_utf8();
        let next = || content.get(behind..).and_then(|rest| rest.chars().next());
        let ends = match character {
            '.' | '!' | '?' => next().is_none_or(char::is_whitespace),
            '\n' | '。' | '！' | '？' => true,
            _ => false,
        };
        ends.then_some(behind)
    })
}

fn floor_boundary(content: &str, mut at: usize) -> usize {
    while !content.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil_boundary(content: &str, mut at: usize) -> usize {
    while !content.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_the_sentence_around_the_phrase() {
        let text = "Hello there. No, that did not fix it! Bye";
        let at = text.find("did not").unwrap();
        let (start, end) = sentence(text, at, at + 7);
        assert_eq!(&text[start..end], "No, that did not fix it!");
        assert_eq!(sentence("...", 0, 1), (0, 3));
        assert_eq!(sentence("mail to ann@example.com now. Bye", 0, 4), (0, 28));
    }

    #[test]
    fn a_long_sentence_is_cut_at_character_boundaries() {
        let text = "é".repeat(1_000);
        let (start, end) = sentence(&text, 600, 602);
        assert!(end - start <= LONGEST_QUOTE + 2 && text.get(start..end).is_some());
    }
}
