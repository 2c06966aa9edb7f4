//! Whether sentences end as questions.

/// Characters within which a sentence is expected to end.
const LONGEST_SENTENCE: usize = 200;

/// Finds the ends of sentences; looks at each character once, however many phrases ask.
#[derive(Debug)]
pub(super) struct SentenceEnds<'t> {
    text: &'t str,
    known: Option<Stretch>,
}

/// A part of a text in which no sentence ends before its end.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: usize,
    end: usize,
    /// Whether the mark at `end` asks.
    asks: bool,
}

impl<'t> SentenceEnds<'t> {
    /// Nothing looked at yet.
    pub(super) const fn of(text: &'t str) -> Self {
        Self { text, known: None }
    }

    /// Whether the sentence that goes on at `from` ends as a question, as far as [`LONGEST_SENTENCE`] shows.
    pub(super) fn in_question(&mut self, from: usize) -> bool {
        let known = self.known.filter(|known| from <= known.end).unwrap_or_else(|| self.look(from));
        self.known = Some(known);
        // Phrases come by their beginnings, so one may end a little before the one that asked last.
        let before = if from < known.from { next_end(self.text, from, known.from) } else { None };
        let (end, asks) = before.unwrap_or((known.end, known.asks));
        asks && self.is_near(from, end)
    }

    fn look(&self, from: usize) -> Stretch {
        let next = next_end(self.text, from, self.text.len());
        let (end, asks) = next.unwrap_or((self.text.len(), false));
        Stretch { from, end, asks }
    }

    fn is_near(&self, from: usize, end: usize) -> bool {
        // A character has one to four bytes, so most need no counting.
        let bytes = end.saturating_sub(from);
        bytes < LONGEST_SENTENCE
            || bytes < 4 * LONGEST_SENTENCE
                && self.text.get(from..end).is_some_and(|part| part.chars().count() < LONGEST_SENTENCE)
    }
}

/// The first mark that ends a sentence between `from` and `to`, and whether it asks.
fn next_end(text: &str, from: usize, to: usize) -> Option<(usize, bool)> {
    text.get(from..to)?.char_indices().find_map(|(at, character)| match character {
        '?' | '？' => Some((from + at, true)),
        '.' | '!' | '\n' | '！' | '。' => Some((from + at, false)),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_asks_when_its_next_mark_does() {
        let text = "Is it? No. What now？Then!";
        let mut ends = SentenceEnds::of(text);
        let asking: Vec<usize> = (0..=text.len())
            .filter(|at| text.is_char_boundary(*at))
            .filter(|at| ends.in_question(*at))
            .collect();
        assert_eq!(asking, [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
        assert!(ends.in_question(12) && !ends.in_question(8), "backwards, too");
        assert!(!SentenceEnds::of("").in_question(0));
    }

    #[test]
    fn a_question_mark_beyond_the_longest_sentence_asks_nothing() {
        for letter in ["a", "é", "😀"] {
            let text = letter.repeat(LONGEST_SENTENCE) + "?";
            assert!(!SentenceEnds::of(&text).in_question(0), "{letter}");
            assert!(SentenceEnds::of(&text).in_question(letter.len()), "{letter}");
        }
    }
}
