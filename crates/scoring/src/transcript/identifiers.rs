//! Order numbers, e-mail addresses and the like.

/// Minimum digits of an identifier.
const MIN_IDENTIFIER_DIGITS: usize = 3;

/// A chunk of text between two spaces.
#[derive(Debug, Default)]
struct Chunk {
    start: usize,
    digits: usize,
    has_at_sign: bool,
}

/// Calls `found` for each identifier, in order, until it returns false: with the byte offset of its chunk and with the
/// identifier without the punctuation around it.
pub(super) fn for_each_identifier<'t>(text: &'t str, mut found: impl FnMut(usize, &'t str) -> bool) {
    if count_digits(text) < MIN_IDENTIFIER_DIGITS && !text.contains('@') {
        return;
    }
    let mut chunk = Chunk::default();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => chunk.digits += 1,
            b'@' => chunk.has_at_sign = true,
            _ => {
                let space = space_width(text, at, byte);
                if space > 0 {
                    if chunk.identifier(text, at).is_some_and(|bare| !found(chunk.start, bare)) {
                        return;
                    }
                    chunk = Chunk { start: at + space, ..Chunk::default() };
                }
            }
        }
    }
    if let Some(bare) = chunk.identifier(text, text.len()) {
        found(chunk.start, bare);
    }
}

/// Number of ASCII digits of `text`, summed in bytes so that compilers vectorise the loop.
fn count_digits(text: &str) -> usize {
    let sums = text.as_bytes().chunks(usize::from(u8::MAX));
    sums.map(|bytes| usize::from(bytes.iter().map(|byte| u8::from(byte.is_ascii_digit())).sum::<u8>())).sum()
}

impl Chunk {
    fn identifier<'t>(&self, text: &'t str, end: usize) -> Option<&'t str> {
        let has_enough_digits = self.digits >= MIN_IDENTIFIER_DIGITS;
        if !has_enough_digits && !self.has_at_sign {
            return None;
        }
        let bare = text.get(self.start..end)?.trim_matches(|character: char| !character.is_alphanumeric());
        (has_enough_digits || bare.contains('@') && bare.contains('.')).then_some(bare)
    }
}

/// Bytes of the white space that begins at `at` with `byte`; 0 when it is none.
fn space_width(text: &str, at: usize, byte: u8) -> usize {
    match byte {
        b' ' | b'\t'..=b'\r' => 1,
        // The first bytes of all white space beyond ASCII.
        0xC2 | 0xE1 | 0xE2 | 0xE3 => {
            let character = text.get(at..).and_then(|rest| rest.chars().next());
            character.filter(|character| character.is_whitespace()).map_or(0, char::len_utf8)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identifiers(text: &str) -> Vec<(usize, &str)> {
        let mut all = Vec::new();
        for_each_identifier(text, |start, bare| {
            all.push((start, bare));
            all.len() < 3
        });
        all
    }

    #[test]
    fn numbers_and_addresses_are_identifiers() {
        assert_eq!(identifiers("Order #88123, in 22 parts"), [(6, "88123")]);
        assert_eq!(identifiers("<ann@example.com>\u{A0}@ann a.b"), [(0, "ann@example.com")]);
        assert_eq!(identifiers("A-1-2-3.\u{3000}x1y2z3"), [(0, "A-1-2-3"), (11, "x1y2z3")]);
    }

    #[test]
    fn search_stops_when_callback_returns_false() {
        assert_eq!(identifiers("111 222 333 444"), [(0, "111"), (4, "222"), (8, "333")]);
    }

    #[test]
    fn space_width_agrees_with_char_is_whitespace() {
        for character in ('\0'..=char::MAX).filter(|character| !character.is_ascii_digit()) {
            let text = format!("{character}");
            let width = space_width(&text, 0, text.as_bytes()[0]);
            assert_eq!(width > 0, character.is_whitespace(), "{character:?}");
        }
    }
}
