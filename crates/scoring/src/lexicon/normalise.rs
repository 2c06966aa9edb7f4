//! One way to write a phrase: wrapped lines, doubled and special blanks, invisible characters and full-width letters
//! do not hide it.

use std::borrow::Cow;

/// A text as the phrases see it, with the way back to the original.
#[derive(Debug)]
pub(super) struct Normalised<'t> {
    /// For the automaton: every run of blanks is one space.
    pub flat: String,
    /// The same length, with line breaks kept: for the question whether a sentence begins.
    pub kept: Cow<'t, str>,
    /// For each byte of `flat` the byte of the original it comes from, and one for the end; empty where both are the
    /// same.
    origins: Vec<u32>,
}

/// What stands between a text and the phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Line breaks where a space could stand, and nothing else: the commonest need.
    LineBreaks,
    Everything,
}

impl<'t> Normalised<'t> {
    /// `None` where the text can be searched as it is.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        match need(text.as_bytes()) {
            Need::Nothing => return None,
            Need::LineBreaks => {
                return Some(Self {
                    flat: text.replace('\n', " "),
                    kept: Cow::Borrowed(text),
                    origins: Vec::new(),
                });
            }
            Need::Everything => {}
        }
        let (mut flat, mut kept) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
        let mut origins = Vec::with_capacity(text.len() + 1);
        let mut in_blanks = false;
        for (at, character) in text.char_indices() {
            let (seen, mark) = match kind_of(character) {
                Kind::Invisible => continue,
                Kind::Blank if in_blanks => {
                    if character == '\n' {
                        // The run is one byte in both texts, so its mark can be changed in place.
                        kept.pop();
                        kept.push('\n');
                    }
                    continue;
                }
                Kind::Blank => (' ', if character == '\n' { '\n' } else { ' ' }),
                Kind::Other(character) => (character, character),
            };
            in_blanks = seen == ' ';
            flat.push(seen);
            kept.push(mark);
            // Every byte of a character leads to the beginning of the original character.
            origins.extend(std::iter::repeat_n(at as u32, seen.len_utf8()));
        }
        origins.push(text.len() as u32);
        Some(Self { flat, kept: Cow::Owned(kept), origins })
    }

    /// The place in the original of the byte range `start..end` of `flat`.
    pub(super) fn original(&self, start: usize, end: usize, text: &str) -> Option<(usize, usize)> {
        if self.origins.is_empty() {
            return Some((start, end));
        }
        let begin = *self.origins.get(start)? as usize;
        let last = *self.origins.get(end.checked_sub(1)?)? as usize;
        let length = text.get(last..)?.chars().next().map_or(0, char::len_utf8);
        Some((begin, last + length))
    }
}

enum Kind {
    Blank,
    Invisible,
    Other(char),
}

/// What a character is to a phrase; full-width letters and digits are the plain ones.
fn kind_of(character: char) -> Kind {
    match character {
        '\u{200B}'..='\u{200D}' | '\u{2060}' | '\u{FEFF}' | '\u{00AD}' => Kind::Invisible,
        '\u{FF10}'..='\u{FF19}' | '\u{FF21}'..='\u{FF3A}' | '\u{FF41}'..='\u{FF5A}' => {
            Kind::Other(char::from_u32(u32::from(character) - 0xFEE0).unwrap_or(character))
        }
        _ if character.is_whitespace() => Kind::Blank,
        _ => Kind::Other(character),
    }
}

/// Looks at each byte once. A line break beside another blank separates: no phrase reaches across a paragraph, but
/// one may be wrapped with a blank left at the end of the line.
fn need(bytes: &[u8]) -> Need {
    let mut before = b'x';
    let mut need = Need::Nothing;
    for (at, byte) in bytes.iter().copied().enumerate() {
        // Most bytes are none of those that matter, and most of the others are single spaces.
        if byte > b' ' && byte < 0xC2 || byte == b' ' && before > b' ' {
            before = byte;
            continue;
        }
        let rest = || (bytes.get(at + 1).copied().unwrap_or(0), bytes.get(at + 2).copied().unwrap_or(0));
        let special = match byte {
            b' ' => matches!(before, b' ' | b'\n') && at > 0,
            b'\n' => {
                need = Need::LineBreaks;
                before == b' '
            }
            b'\t'..=b'\r' => true,
            0xC2 => matches!(rest().0, 0x85 | 0xA0 | 0xAD),
            0xE1 => rest() == (0x9A, 0x80),
            0xE2 => matches!(rest(), (0x80, 0x80..=0x8D | 0xA8 | 0xA9 | 0xAF) | (0x81, 0x9F | 0xA0)),
            0xE3 => rest() == (0x80, 0x80),
            0xEF => matches!(rest(), (0xBB, 0xBF) | (0xBC, 0x90..=0x99 | 0xA1..=0xBA) | (0xBD, 0x81..=0x9A)),
            _ => false,
        };
        if special {
            return Need::Everything;
        }
        before = byte;
    }
    need
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_become_one_space_and_lead_back() {
        let text = "I want \u{a0}to\ntalk\u{200b} now";
        let normalised = Normalised::of(text).unwrap();
        assert_eq!(normalised.flat, "I want to talk now");
        assert_eq!(normalised.kept, "I want to\ntalk now");
        let at = normalised.flat.find("talk").unwrap();
        let (start, end) = normalised.original(at, at + 4, text).unwrap();
        assert_eq!(&text[start..end], "talk");
        let wide = Normalised::of("Ｔｈａｎｋｓ!").unwrap();
        assert_eq!(wide.flat, "Thanks!");
        assert_eq!(wide.original(0, 6, "Ｔｈａｎｋｓ!"), Some((0, 18)));
    }

    #[test]
    fn plain_text_is_searched_as_it_is() {
        for text in ["", "a b", "¡Perfecto, ya funciona!", "我的订单还没有到。谢谢！"] {
            assert!(Normalised::of(text).is_none(), "{text}");
        }
    }
}
