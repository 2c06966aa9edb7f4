//! Which parts of a message are new and its author's own: quoted earlier text is not new evidence.

/// Beginnings of lines behind which an e-mail client puts the earlier message.
const REPLY_SEPARATORS: [&str; 4] = [
    "-----original message",
    "________________________________",
    "---------- forwarded",
    "begin forwarded message",
];

/// Parts of a text, as byte ranges in order, and what they are.
#[derive(Debug, Default)]
pub(crate) struct Quoted {
    /// Quoted earlier messages: nothing in them counts.
    pub earlier: Vec<(usize, usize)>,
    /// Text in quotation marks: somebody's words are cited, so nothing in it counts in favour.
    pub cited: Vec<(usize, usize)>,
}

impl Quoted {
    /// Finds the quoted parts of `text`.
    pub(crate) fn of(text: &str) -> Self {
        Self { earlier: earlier_messages(text), cited: citations(text) }
    }

    /// Whether the byte at `at` belongs to an earlier message.
    pub(crate) fn is_earlier(&self, at: usize) -> bool {
        touches(&self.earlier, at, at + 1)
    }
}

/// Whether `start..end` touches one of `ranges`.
pub(super) fn touches(ranges: &[(usize, usize)], start: usize, end: usize) -> bool {
    let first = ranges.partition_point(|range| range.1 <= start);
    ranges.get(first).is_some_and(|range| range.0 < end)
}

fn earlier_messages(text: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        let bare = line.trim();
        if is_separator(bare) {
            ranges.push((start, text.len()));
            return ranges;
        }
        if bare.starts_with('>') {
            ranges.push((start, end));
        }
        start = end;
    }
    ranges
}

/// Whether everything from this line on is an earlier message.
fn is_separator(line: &str) -> bool {
    let beginning: String = line.chars().take(40).collect::<String>().to_ascii_lowercase();
    REPLY_SEPARATORS.iter().any(|separator| beginning.starts_with(separator))
        || (beginning.starts_with("on ") && line.ends_with("wrote:"))
}

/// Longest citation: a stray quotation mark must not swallow the rest of a message.
const LONGEST_CITATION: usize = 400;

fn citations(text: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut open: Option<(usize, char)> = None;
    for (at, character) in text.char_indices() {
        match (character, open) {
            ('"', Some((start, '"'))) | ('\u{201D}', Some((start, '\u{201C}'))) => {
                if at - start <= LONGEST_CITATION {
                    ranges.push((start, at + character.len_utf8()));
                }
                open = None;
            }
            ('"' | '\u{201C}', _) => open = Some((at, character)),
            _ => {}
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_lines_and_everything_behind_a_reply_header_are_earlier_text() {
        let text = "still broken\n> Thanks, it works\nbye\nOn Monday, Support wrote:\nGreat!";
        let parts: Vec<&str> =
            earlier_messages(text).into_iter().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(parts, ["> Thanks, it works\n", "On Monday, Support wrote:\nGreat!"]);
    }

    #[test]
    fn text_in_quotation_marks_is_cited() {
        let text = "you said \"it is fixed\" and \u{201C}all good\u{201D}";
        let parts: Vec<&str> = citations(text).into_iter().map(|(start, end)| &text[start..end]).collect();
        assert_eq!(parts, ["\"it is fixed\"", "\u{201C}all good\u{201D}"]);
    }
}
