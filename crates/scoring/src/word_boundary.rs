//! Where words end, in scripts with and without spaces.

/// Whether the character belongs to a script that writes no spaces between words.
pub(crate) const fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}')
}

/// Whether the boundary between `left` and `right` is inside a word. In a script without spaces every character is a word.
pub(crate) fn splits_word(left: &str, right: &str) -> bool {
    let in_word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() && !is_unspaced(character))
    };
    in_word(left.chars().next_back()) && in_word(right.chars().next())
}
