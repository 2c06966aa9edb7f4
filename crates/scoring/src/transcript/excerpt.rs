//! What is read of very long conversations: the beginning and the end of every message.
//!
//! A pasted log of megabytes tells no more about a customer than its first and last pages do, and must not hold up
//! the conversations behind it.

use std::borrow::Cow;

/// Bytes of a conversation up to which every message is read as a whole; beyond it each gets an equal share.
const READ_AS_A_WHOLE: usize = 112 * 1024;

/// So many bytes are left out at most, so that no word is cut.
const LONGEST_CUT_WORD: usize = 64;

/// A text, or its beginning and its end with a line break between them.
#[derive(Debug)]
pub(super) struct Excerpt<'a> {
    pub text: Cow<'a, str>,
}

/// Bytes that may be read of each message of a conversation.
pub(super) fn share(texts: impl Iterator<Item = usize>) -> usize {
    let (count, total) = texts.fold((0, 0), |(count, total), length| (count + 1, total + length));
    if total <= READ_AS_A_WHOLE { usize::MAX } else { READ_AS_A_WHOLE / count }
}

impl<'a> Excerpt<'a> {
    /// At most `most` bytes of `text`: three quarters from its beginning, the rest from its end.
    pub(super) fn of(text: &'a str, most: usize) -> Self {
        if text.len() <= most {
            return Self { text: Cow::Borrowed(text) };
        }
        let head = text.get(..text.floor_char_boundary(most / 4 * 3)).unwrap_or("");
        let tail = text.get(text.ceil_char_boundary(text.len() - most / 4)..).unwrap_or("");
        let parts = [without_last_word(head), without_first_word(tail)];
        Self { text: Cow::Owned(parts.join("\n")) }
    }
}

/// The text up to its last blank, if that is near.
fn without_last_word(text: &str) -> &str {
    let cut = text.rfind(char::is_whitespace).filter(|at| is_near(text.len() - at, text));
    cut.and_then(|at| text.get(..at)).unwrap_or(text)
}

/// The text behind its first blank, if that is near.
fn without_first_word(text: &str) -> &str {
    let cut = text.find(char::is_whitespace).filter(|at| is_near(*at, text));
    cut.and_then(|at| text.get(at..)).map_or(text, str::trim_start)
}

/// Whether little of the text is lost by leaving out so many bytes.
fn is_near(bytes: usize, text: &str) -> bool {
    bytes <= LONGEST_CUT_WORD && bytes <= text.len() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_read_at_its_beginning_and_its_end() {
        let text = format!("début {} fin", "é".repeat(1_000));
        let excerpt = Excerpt::of(&text, 40);
        assert!(excerpt.text.starts_with("début é") && excerpt.text.ends_with(" fin"));
        assert!(excerpt.text.len() <= 41);
    }

    #[test]
    fn no_word_is_cut() {
        let text = "order 123456 ".repeat(100);
        for most in 60..90 {
            let excerpt = Excerpt::of(&text, most);
            assert!(
                excerpt.text.split_whitespace().all(|word| word == "order" || word == "123456"),
                "{most}"
            );
        }
    }

    #[test]
    fn conversations_of_ordinary_length_are_read_as_a_whole() {
        assert_eq!(share([80 * 1024, 20 * 1024].into_iter()), usize::MAX);
        assert_eq!(share([80 * 1024; 50].into_iter()), READ_AS_A_WHOLE / 50);
    }
}
