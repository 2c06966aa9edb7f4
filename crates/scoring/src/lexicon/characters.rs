//! What characters are to words. The common ones are told by their ranges: general tables are ten times as slow.

/// Whether the byte is a letter or a digit of ASCII; a table is faster than the comparisons where no branch follows.
pub(crate) fn is_ascii_letter_or_digit(byte: u8) -> bool {
    ASCII_LETTERS_AND_DIGITS[usize::from(byte)]
}

const ASCII_LETTERS_AND_DIGITS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0u8;
    while byte.is_ascii() {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// Whether the character is a letter or a digit: the same as [`char::is_alphanumeric`].
pub(crate) fn is_letter_or_digit(character: char) -> bool {
    match character {
        '0'..='9' | 'A'..='Z' | 'a'..='z' => true,
        '\0'..='\x7F' => false,
        // Latin, Cyrillic, Hiragana and Katakana, Han, Hangul.
        '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{24F}' => true,
        '\u{400}'..='\u{481}' => true,
        '\u{3041}'..='\u{3096}' | '\u{30A1}'..='\u{30FA}' | '\u{4E00}'..='\u{9FFF}' => true,
        '\u{AC00}'..='\u{D7A3}' => true,
        // Punctuation of these scripts, and pictures.
        '\u{2000}'..='\u{206F}' | '\u{3000}'..='\u{3004}' | '\u{1F300}'..='\u{1F64F}' => false,
        other => other.is_alphanumeric(),
    }
}

/// Whether the character belongs to a script that writes no spaces between words.
pub(crate) const fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_cuts_say_what_the_tables_say() {
        for character in '\0'..=char::MAX {
            assert_eq!(is_letter_or_digit(character), character.is_alphanumeric(), "{character:?}");
        }
    }
}
