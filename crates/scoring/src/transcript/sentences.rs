//! Where sentences begin and end.

/// At most so many bytes on either side are looked at: bounds the work on texts without full stops.
const LONGEST_SENTENCE: usize = 240;

/// The byte range of the sentence around `start..end`, its closing mark included.
pub(crate) fn sentence_around(text: &str, start: usize, end: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let floor = start.saturating_sub(LONGEST_SENTENCE);
    let begin = (floor..start).rev().find(|at| ends_sentence(bytes, *at)).map_or(floor, |at| at + 1);
    let ceiling = (end + LONGEST_SENTENCE).min(bytes.len());
    let finish = (end..ceiling).find(|at| ends_sentence(bytes, *at)).map_or(ceiling, |at| at + 1);
    (begin, finish)
}

/// Whether the byte ends a sentence. Marks of Chinese and Japanese are told by their last byte and the two before.
fn ends_sentence(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at) {
        Some(b'!' | b'?' | b'\n') => true,
        Some(b'.') => bytes.get(at + 1).is_none_or(|next| !next.is_ascii_alphanumeric()),
        // U+3002, U+FF01 and U+FF1F in UTF-8.
        Some(0x82 | 0x81 | 0x9F) => {
            let wide = at.checked_sub(2).and_then(|from| bytes.get(from..=at));
            matches!(wide, Some([0xE3, 0x80, 0x82] | [0xEF, 0xBC, 0x81] | [0xEF, 0xBC, 0x9F]))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_reaches_from_mark_to_mark() {
        let text = "It failed. It is OK now! v1.2 is out";
        let at = text.find("OK").unwrap();
        let (start, end) = sentence_around(text, at, at + 2);
        assert_eq!(&text[start..end], " It is OK now!");
        let chinese = "坏了。现在好了！谢谢";
        let at = chinese.find("好").unwrap();
        let (start, end) = sentence_around(chinese, at, at + 3);
        assert_eq!(&chinese[start..end], "现在好了！");
        assert_eq!(sentence_around(text, text.len() - 1, text.len()), (24, text.len()));
    }
}
