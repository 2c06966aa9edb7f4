//! Excerpts of very long conversations: the start and the end of every message.
//!
//! Bounds the time: the middle of a pasted log of megabytes adds nothing about the customer.

use std::borrow::Cow;

/// Bytes of a conversation up to which every message is read in full; above it each message gets an equal budget.
const MAX_BYTES_IN_FULL: usize = 112 * 1024;

/// Maximum bytes that are dropped to end an excerpt at a word boundary.
const MAX_TRIMMED_WORD: usize = 64;

/// Byte budget of each message of a conversation whose messages have these lengths in bytes.
pub(super) fn byte_budget(lengths: impl Iterator<Item = usize>) -> usize {
    let (count, total) = lengths.fold((0, 0), |(count, total), length| (count + 1, total + length));
    if total <= MAX_BYTES_IN_FULL { usize::MAX } else { MAX_BYTES_IN_FULL / count }
}

/// At most `max_bytes` bytes of `text`: three quarters from its start, the rest from its end, with a line break between them.
pub(super) fn excerpt(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let head = text.get(..text.floor_char_boundary(max_bytes / 4 * 3)).unwrap_or("");
    let tail = text.get(text.ceil_char_boundary(text.len() - max_bytes / 4)..).unwrap_or("");
    let parts = [without_last_word(head), without_first_word(tail)];
    Cow::Owned(parts.join("\n"))
}

/// The text up to its last blank, if that loses little of it.
fn without_last_word(text: &str) -> &str {
    let cut = text.rfind(char::is_whitespace).filter(|at| loses_little(text.len() - at, text));
    cut.and_then(|at| text.get(..at)).unwrap_or(text)
}

/// The text after its first blank, if that loses little of it.
fn without_first_word(text: &str) -> &str {
    let cut = text.find(char::is_whitespace).filter(|at| loses_little(*at, text));
    cut.and_then(|at| text.get(at..)).map_or(text, str::trim_start)
}

/// Whether dropping this many bytes loses little of the text.
fn loses_little(bytes: usize, text: &str) -> bool {
    bytes <= MAX_TRIMMED_WORD && bytes <= text.len() / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_keeps_start_and_end() {
        let text = format!("début {} fin", "é".repeat(1_000));
        let excerpt = excerpt(&text, 40);
        assert!(excerpt.starts_with("début é") && excerpt.ends_with(" fin"));
        assert!(excerpt.len() <= 41);
    }

    #[test]
    fn excerpt_cuts_no_word() {
        let text = "order 123456 ".repeat(100);
        for max_bytes in 60..90 {
            let excerpt = excerpt(&text, max_bytes);
            assert!(
                excerpt.split_whitespace().all(|word| word == "order" || word == "123456"),
                "{max_bytes}"
            );
        }
    }

    #[test]
    fn ordinary_conversations_are_read_in_full() {
        assert_eq!(byte_budget([80 * 1024, 20 * 1024].into_iter()), usize::MAX);
        assert_eq!(byte_budget([80 * 1024; 50].into_iter()), MAX_BYTES_IN_FULL / 50);
    }
}
