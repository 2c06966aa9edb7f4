//! The quotes of an evaluation: exact substrings with their byte offsets, each kept once.

use assay_contracts::evaluation::Evidence;

use crate::transcript::{Role, Transcript, earlier_messages};

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

    /// Quotes the item at `index`: whole where it is short, else its last sentences for a customer, who comes to the
    /// point at the end, and its first ones for everybody else.
    pub(crate) fn quote(&mut self, index: usize) -> Option<usize> {
        let item = self.transcript.item(index)?;
        let content = item.message.content.as_str();
        let (start, end) = passage(content, item.role == Role::Customer);
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

/// The part of a text to be quoted: at most [`LONGEST_QUOTE`] bytes, ending at a sentence where there is one, else at a
/// word, without outer spaces.
fn passage(content: &str, from_the_end: bool) -> (usize, usize) {
    let (start, end) = own_part(content);
    let text = content.get(start..end).unwrap_or("");
    if text.len() <= LONGEST_QUOTE {
        return (start, end);
    }
    if from_the_end {
        let floor = text.ceil_char_boundary(text.len() - LONGEST_QUOTE);
        let rest = text.get(floor..).unwrap_or("");
        let cut = sentence_ends(rest).find(|at| *at < rest.len()).or_else(|| first_blank(rest)).unwrap_or(0);
        let begin = floor + cut;
        let spaces = text.get(begin..).map_or(0, |rest| rest.len() - rest.trim_start().len());
        return (start + begin + spaces, end);
    }
    let part = text.get(..text.floor_char_boundary(LONGEST_QUOTE)).unwrap_or("");
    let cut = sentence_ends(part).last().or_else(|| part.rfind(char::is_whitespace)).filter(|at| *at > 0);
    let part = part.get(..cut.unwrap_or(part.len())).unwrap_or("").trim_end();
    (start, start + part.len())
}

/// The text without outer spaces, and without the quoted messages and the signature behind it.
fn own_part(content: &str) -> (usize, usize) {
    let behind = earlier_messages(content).into_iter().next().map_or(content.len(), |(start, _)| start);
    let own = content.get(..behind).filter(|own| !own.trim().is_empty()).unwrap_or(content);
    let start = own.len() - own.trim_start().len();
    (start, start + own.trim().len())
}

fn first_blank(text: &str) -> Option<usize> {
    text.find(char::is_whitespace)
}

/// Offsets behind marks that end a sentence. A full stop inside of an address or a number ends none.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(move |(at, character)| {
        let behind = at + character.len_utf8();
        let next = || text.get(behind..).and_then(|rest| rest.chars().next());
        let ends = match character {
            '.' | '!' | '?' => next().is_none_or(char::is_whitespace),
            '\n' | '。' | '！' | '？' => true,
            _ => false,
        };
        ends.then_some(behind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str, from_the_end: bool) -> &str {
        let (start, end) = passage(text, from_the_end);
        &text[start..end]
    }

    #[test]
    fn a_short_message_is_quoted_whole_without_its_signature() {
        assert_eq!(quoted("  No, that did not fix it! \n", true), "No, that did not fix it!");
        assert_eq!(quoted("It works.\n\nKind regards,\nAnn", true), "It works.");
        assert_eq!(quoted("> only a quote", false), "> only a quote");
    }

    #[test]
    fn a_long_message_is_quoted_at_whole_sentences() {
        let text = format!("First things first. {} And so it works now.", "Something happened. ".repeat(30));
        assert!(quoted(&text, true).starts_with("Something happened.") && quoted(&text, true).ends_with("now."));
        assert!(quoted(&text, false).starts_with("First") && quoted(&text, false).ends_with("happened."));
        assert!(quoted(&text, false).len() <= LONGEST_QUOTE && quoted(&text, true).len() <= LONGEST_QUOTE);
    }

    #[test]
    fn without_a_sentence_a_quote_ends_at_a_word_and_without_words_at_a_character() {
        let words = "word ".repeat(100);
        assert!(quoted(&words, false).ends_with("word") && quoted(&words, true).starts_with("word"));
        let letters = "é".repeat(1_000);
        assert!(quoted(&letters, true).len() <= LONGEST_QUOTE && !quoted(&letters, false).is_empty());
    }
}
