//! Tells, at the beginning of most words, that no phrase begins there: to look a word up in the list of all phrases takes
//! ten times as long as to look up what they begin with.

/// What phrases begin with. A window that holds none of it begins no phrase; one that does mostly begins one.
#[derive(Debug)]
pub(super) struct Beginnings {
    /// By the first byte: most marks and blanks begin no phrase.
    first: [bool; 256],
    /// Of phrases of up to three bytes.
    short: Keys,
    /// Of phrases of four to seven bytes, which tell little more by their other bytes.
    middle: Keys,
    /// Of all longer ones, nine of ten.
    long: Keys,
}

impl Beginnings {
    /// The beginnings of these phrases.
    pub(super) fn of(phrases: &[String]) -> Self {
        let mut first = [false; 256];
        let (mut short, mut middle, mut long) = (Keys::of(3, 15), Keys::of(4, 15), Keys::of(8, 17));
        for phrase in phrases.iter().map(String::as_bytes) {
            if let Some(byte) = phrase.first() {
                first[usize::from(byte.to_ascii_lowercase())] = true;
                first[usize::from(byte.to_ascii_uppercase())] = true;
            }
            match phrase.len() {
                0..=3 => short.add(phrase),
                4..=7 => middle.add(phrase),
                _ => long.add(phrase),
            }
        }
        Self { first, short, middle, long }
    }

    /// Whether a phrase begins with this byte.
    pub(super) fn may_begin_with(&self, byte: u8) -> bool {
        self.first[usize::from(byte)]
    }

    /// Whether a phrase may begin with this window; false is certain.
    pub(super) fn may_hold(&self, window: Window) -> bool {
        self.short.may_hold(window) | self.middle.may_hold(window) | self.long.may_hold(window)
    }
}

/// Five bits of each of eight bytes of a text: enough to tell letters apart, and the same for both cases of a letter.
/// Other bytes may be taken for letters; the list tells.
#[derive(Clone, Copy)]
pub(super) struct Window(u64);

impl Window {
    const FIVE_BITS: u64 = 0x1f1f_1f1f_1f1f_1f1f;

    /// The window that begins at `start`; behind the end of the text it holds zeros.
    pub(super) fn at(bytes: &[u8], start: usize) -> Self {
        let window = first_bytes(bytes.get(start..).unwrap_or_default());
        Self(u64::from_le_bytes(window) & Self::FIVE_BITS)
    }
}

/// The first bytes of a text, with zeros behind its end.
pub(super) fn first_bytes<const COUNT: usize>(text: &[u8]) -> [u8; COUNT] {
    text.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [0; COUNT];
        padded.iter_mut().zip(text).for_each(|(to, from)| *to = *from);
        padded
    })
}

/// A set of beginnings of one length, as one bit for each hash. It may hold what was not put in, and never lacks what
/// was.
struct Keys {
    length: usize,
    /// The bits of a window that count.
    mask: u64,
    /// Binary logarithm of the number of bits.
    width: u32,
    bits: Box<[u64]>,
}

impl Keys {
    /// None of `length` bytes yet, in 2^`width` bits.
    fn of(length: usize, width: u32) -> Self {
        let mask = Window::FIVE_BITS >> (64 - 8 * length);
        Self { length, mask, width, bits: vec![0; 1 << (width - 6)].into() }
    }

    /// Adds the beginning of a phrase; behind the end of a shorter one, anything may stand.
    fn add(&mut self, phrase: &[u8]) {
        let Window(known) = Window::at(phrase, 0);
        let missing = self.length.saturating_sub(phrase.len());
        for any in 0..1u64 << (5 * missing) {
            let spread = (0..missing)
                .fold(0, |spread, at| spread | (any >> (5 * at) & 0x1f) << (8 * (phrase.len() + at)));
            let (word, bit) = self.place(Window(known | spread));
            if let Some(word) = self.bits.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn may_hold(&self, window: Window) -> bool {
        let (word, bit) = self.place(window);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    fn place(&self, Window(bytes): Window) -> (usize, u64) {
        let hash = (bytes & self.mask).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.width);
        ((hash / 64) as usize, 1 << (hash % 64))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count: u32 = self.bits.iter().map(|word| word.count_ones()).sum();
        write!(formatter, "Keys({count} of {} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may_begin(phrase: &str, text: &str) -> bool {
        let beginnings = Beginnings::of(&[phrase.to_owned()]);
        let (bytes, window) = (text.as_bytes(), Window::at(text.as_bytes(), 0));
        beginnings.may_begin_with(bytes[0]) && beginnings.may_hold(window)
    }

    #[test]
    fn a_beginning_of_any_length_is_known_in_either_case_and_whatever_follows() {
        let phrase = "Thanks, that is all\u{2019}";
        for (length, _) in phrase.char_indices().skip(1) {
            let phrase = &phrase[..length];
            for follows in ["", " ", "zz", "\u{FF01}\u{FF01}\u{FF01}"] {
                for text in [phrase.to_lowercase(), phrase.to_uppercase()] {
                    assert!(may_begin(phrase, &format!("{text}{follows}")), "{phrase}: {text}{follows}");
                }
            }
        }
    }

    #[test]
    fn what_begins_otherwise_is_mostly_told() {
        for text in ["that is all", "thinks", "thanking you", " thanks a lot"] {
            assert!(!may_begin("thanks a lot", text), "{text}");
        }
    }
}
