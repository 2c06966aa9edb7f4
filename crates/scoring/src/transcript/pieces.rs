//! A text, cut into words and what stands between them.

use crate::lexicon::{is_ascii_letter_or_digit, is_letter_or_digit, is_unspaced};

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// Letters, digits and apostrophes.
    Word(&'t str),
    /// A letter of a script without spaces between words.
    Unspaced(&'t str),
    /// Any other character.
    Mark(char),
}

/// Calls `found` for the parts of `text` in order, with their byte offsets; together they are the whole text.
pub(super) fn each_piece<'t>(text: &'t str, mut found: impl FnMut(usize, Piece<'t>)) {
    let bytes = text.as_bytes();
    let mut start = 0;
    while let Some(first) = bytes.get(start).copied() {
        if first.is_ascii() && !in_ascii_word(first) {
            found(start, Piece::Mark(char::from(first)));
            start += 1;
            continue;
        }
        let end = word_end(text, start);
        if end > start {
            found(start, Piece::Word(text.get(start..end).unwrap_or("")));
            start = end;
        } else {
            let Some(character) = character_at(text, start) else { return };
            let end = start + character.len_utf8();
            let is_letter = is_unspaced(character) && is_letter_or_digit(character);
            let letter = text.get(start..end).filter(|_| is_letter);
            found(start, letter.map_or(Piece::Mark(character), Piece::Unspaced));
            start = end;
        }
    }
}

/// Where the word ends that begins at `start`; `start` itself when none does.
fn word_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        if in_ascii_word(*byte) {
            at += 1;
        } else if byte.is_ascii() {
            break;
        } else {
            match character_at(text, at).filter(|character| in_spaced_word(*character)) {
                Some(character) => at += character.len_utf8(),
                None => break,
            }
        }
    }
    at
}

fn in_ascii_word(byte: u8) -> bool {
    is_ascii_letter_or_digit(byte) || byte == b'\''
}

fn in_spaced_word(character: char) -> bool {
    !is_unspaced(character) && is_letter_or_digit(character)
}

fn character_at(text: &str, at: usize) -> Option<char> {
    text.get(at..)?.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_into_words_single_letters_and_marks() {
        use Piece::{Mark, Unspaced, Word};
        let mut pieces: Vec<(usize, Piece<'_>)> = Vec::new();
        each_piece("Don't, señor3谢了。ok", |at, piece| pieces.push((at, piece)));
        assert_eq!(
            pieces,
            [
                (0, Word("Don't")),
                (5, Mark(',')),
                (6, Mark(' ')),
                (7, Word("señor3")),
                (14, Unspaced("谢")),
                (17, Unspaced("了")),
                (20, Mark('。')),
                (23, Word("ok")),
            ]
        );
    }
}
