//! What is read of very long conversations: the beginning and the end of every message.
//!
//! A pasted log of megabytes tells no more about a customer than its first and last pages do, and must not hold up
//! the conversations behind it.

use std::borrow::Cow;

/// Bytes of a conversation up to which every message is read as a whole; beyond it each gets an equal share.
const READ_AS_A_WHOLE: usize = 112 * 1024;

/// A text, or its beginning and its end with a line break between them.
#[derive(Debug)]
pub(super) struct Excerpt<'a> {
    pub text: Cow<'a, str>,
}

/// Bytes that may be read of each message of a conversation.
pub(super) fn share(texts: impl ExactSizeIterator<Item = usize>) -> usize {
    let count = texts.len().max(1);
    let total: usize = texts.sum();
    if total <= READ_AS_A_WHOLE { usize::MAX } else { READ_AS_A_WHOLE / count }
}

impl<'a> Excerpt<'a> {
    /// At most `most` bytes of `text`: three quarters from its beginning, the rest from its end.
    pub(super) fn of(text: &'a str, most: usize) -> Self {
        if text.len() <= most {
            return Self { text: Cow::Borrowed(text) };
        }
        let head = floor_boundary(text, most / 4 * 3);
        let tail = floor_boundary(text, text.len() - most / 4);
        let parts = [text.get(..head).unwrap_or(""), text.get(tail..).unwrap_or("")];
        Self { text: Cow::Owned(parts.join("\n")) }
    }
}

fn floor_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
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
    fn conversations_of_ordinary_length_are_read_as_a_whole() {
        assert_eq!(share([80 * 1024, 20 * 1024].into_iter()), usize::MAX);
        assert_eq!(share([80 * 1024; 50].into_iter()), READ_AS_A_WHOLE / 50);
    }
}
