//! What is seen of a message: its words, pairs of words and letter sequences, words of the messages before and after it,
//! and where it stands; each as a number, its hash.

use std::borrow::Cow;

use crate::reader::view::Placed;
use crate::transcript::{Role, Transcript};

/// Bytes of a message at its beginning and at its end that are read; the middle of longer ones is left out.
const READ_BYTES: (usize, usize) = (1_600, 800);
/// Words of the message before, at its end, and of the one after, at its beginning.
const NEIGHBOUR_WORDS: usize = 40;
/// Letters of a sequence.
const LETTERS: usize = 4;
/// Waits that are told apart, in milliseconds: five minutes, an hour, a day.
const GAPS: [i64; 3] = [5 * 60_000, 3_600_000, 86_400_000];

/// What is seen of a message, as sorted hashes, each once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// With the message behind it.
    pub followed: Vec<u32>,
    /// As if nothing came behind it.
    pub last: Vec<u32>,
}

/// What is seen of each message that is read.
pub(crate) fn grams(transcript: &Transcript<'_>, read: &[Placed]) -> Vec<Seen> {
    of_texts(transcript, read, &texts(transcript, read))
}

/// The texts of the messages.
pub(super) fn texts(transcript: &Transcript<'_>, read: &[Placed]) -> Vec<Text> {
    read.iter().map(|placed| Text::of(&own_text(transcript, placed.item))).collect()
}

/// What is seen of a message with each of its last two parts alone, where it ends with a paragraph of its own: what comes
/// before it, and the paragraph. The text to be read without the paragraph comes with them.
pub(super) fn without_last_paragraph(
    transcript: &Transcript<'_>,
    read: &[Placed],
    texts: &[Text],
    at: usize,
) -> Option<(Text, Seen)> {
    let text = own_text(transcript, read.get(at)?.item);
    let (before, last) = text.trim_end().rsplit_once("\n\n")?;
    if before.trim().is_empty() || last.contains(['?', '？']) {
        return None;
    }
    let mut alone: Vec<Text> = texts.to_vec();
    *alone.get_mut(at)? = Text::of(last);
    Some((Text::of(before), of_message(transcript, read, &alone, at, 0)))
}

/// What is seen of each message with these texts.
pub(super) fn of_texts(transcript: &Transcript<'_>, read: &[Placed], texts: &[Text]) -> Vec<Seen> {
    let mut before: Option<i64> = None;
    (0..read.len())
        .map(|at| {
            let time = read.get(at).and_then(|placed| transcript.item(placed.item));
            let time = time.map_or(0, |item| item.message.timestamp.as_millis());
            let waited = before.map_or(0, |before| time - before);
            before = Some(time);
            of_message(transcript, read, texts, at, waited)
        })
        .collect()
}

/// A text in lower case with every digit as 0, and its words.
#[derive(Debug, Clone)]
pub(super) struct Text {
    words: Vec<String>,
    /// Bytes of its own text.
    length: usize,
    asks: bool,
}

/// The author's own text, without the middle of a very long one.
fn own_text<'t>(transcript: &'t Transcript<'_>, item: usize) -> Cow<'t, str> {
    let own = transcript.item(item).map(|item| item.own_text()).unwrap_or_default();
    let (head, tail) = READ_BYTES;
    if own.len() <= head + tail {
        return own;
    }
    let (head, tail) = (own.floor_char_boundary(head), own.floor_char_boundary(own.len() - tail));
    Cow::Owned([own.get(..head).unwrap_or(""), own.get(tail..).unwrap_or("")].join("\n"))
}

impl Text {
    fn of(text: &str) -> Self {
        let asks = text.contains(['?', '？']);
        let text: String = text
            .chars()
            .flat_map(char::to_lowercase)
            .map(|character| if character.is_numeric() { '0' } else { character })
            .collect();
        let text = text.trim();
        Self { words: words(text), length: text.len(), asks }
    }
}

/// Words, single Chinese characters, and single marks.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut in_word = false;
    for character in text.chars() {
        let continues = (character.is_alphanumeric() || character == '_') && !is_han(character);
        if character.is_whitespace() {
            in_word = false;
        } else if continues && in_word {
            if let Some(word) = words.last_mut() {
                word.push(character);
            }
        } else {
            words.push(character.to_string());
            in_word = continues;
        }
    }
    words
}

const fn is_han(character: char) -> bool {
    matches!(character, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{3040}'..='\u{30FF}')
}

fn of_message(transcript: &Transcript<'_>, read: &[Placed], texts: &[Text], at: usize, waited: i64) -> Seen {
    let (Some(placed), Some(text)) = (read.get(at), texts.get(at)) else { return Seen::default() };
    let (side, name) = (side(placed.role), letter(placed.role));
    let neighbour = |at: Option<usize>| at.and_then(|at| Some((read.get(at)?.role, texts.get(at)?)));
    let previous = neighbour(at.checked_sub(1));
    let mut found = Grams(Vec::with_capacity(512));
    found.words(side, &text.words);
    if let Some((role, text)) = previous {
        let skipped = text.words.len().saturating_sub(NEIGHBOUR_WORDS);
        for word in text.words.iter().skip(skipped) {
            found.add(&["<", letter(role), word]);
        }
    }
    let likeness = (transcript.likeness(placed.item) * 5.0) as usize;
    let gap = GAPS.iter().filter(|gap| waited >= **gap).count();
    let length = text.length.checked_ilog2().unwrap_or(0).min(9) as usize;
    found.add(&["@", name]);
    found.add(&["@", name, "after", previous.map_or("-", |(role, _)| letter(role))]);
    found.place(name, "from start", at.min(3));
    found.place(name, "length", length);
    found.place(name, "gap", gap);
    found.place(name, "asks", usize::from(text.asks));
    found.place(name, "likeness", likeness);
    let mut last = Grams(found.0.clone());
    last.add(&["@", name, "before", "-"]);
    let next = neighbour(Some(at + 1));
    found.add(&["@", name, "before", next.map_or("-", |(role, _)| letter(role))]);
    if let Some((role, text)) = next {
        let first = text.words.get(..NEIGHBOUR_WORDS.min(text.words.len())).unwrap_or(&[]);
        for word in first {
            found.add(&[">", side, letter(role), word]);
        }
        for pair in first.windows(2) {
            found.add(&[">>", side, letter(role), &pair.join(" ")]);
        }
    }
    Seen { followed: found.finish(), last: last.finish() }
}

/// Humans and AI agents say what agents say.
const fn side(role: Role) -> &'static str {
    match role {
        Role::Customer => "C",
        Role::Ai | Role::Human | Role::Mixed | Role::System | Role::Note => "A",
    }
}

const fn letter(role: Role) -> &'static str {
    match role {
        Role::Customer => "C",
        Role::Ai => "A",
        Role::Human => "H",
        Role::Mixed => "M",
        Role::System => "S",
        Role::Note => "N",
    }
}

/// Hashes of what was seen.
struct Grams(Vec<u32>);

impl Grams {
    /// Words, pairs of words and sequences of letters of one text.
    fn words(&mut self, side: &str, words: &[String]) {
        for word in words {
            self.add(&["1", side, word]);
        }
        for pair in words.windows(2) {
            self.add(&["2", side, &pair.join(" ")]);
        }
        let joined = words.join(" ");
        let ends: Vec<usize> = joined.char_indices().map(|(at, _)| at).chain([joined.len()]).collect();
        for window in ends.windows(LETTERS + 1) {
            if let (Some(start), Some(end)) = (window.first(), window.last()) {
                self.add(&["4", side, joined.get(*start..*end).unwrap_or("")]);
            }
        }
    }

    fn place(&mut self, name: &str, what: &str, value: usize) {
        self.add(&["@", name, what, &value.to_string()]);
    }

    /// FNV-1a over the parts, folded to 32 bits.
    fn add(&mut self, parts: &[&str]) {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for part in parts {
            for byte in part.bytes().chain([0x1f]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        self.0.push((hash ^ (hash >> 32)) as u32);
    }

    fn finish(mut self) -> Vec<u32> {
        self.0.sort_unstable();
        self.0.dedup();
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_single_characters_and_marks() {
        assert_eq!(words("i can't pay 00 €!"), ["i", "can", "'", "t", "pay", "00", "€", "!"]);
        assert_eq!(words("订单 ok"), ["订", "单", "ok"]);
    }
}
