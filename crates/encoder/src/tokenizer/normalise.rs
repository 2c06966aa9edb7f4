//! Text normalisation before segmentation.

use crate::error::ModelError;
use crate::file::ModelFile;

/// Stands for a space in pieces, and is put in front of every text.
const METASPACE: char = '\u{2581}';

/// Replaces characters by the table of the model file.
pub(crate) struct Normaliser {
    /// The replaced code points, ascending.
    from: Vec<u32>,
    /// Start of each replacement in `to`, and the end of the last.
    offsets: Vec<u32>,
    to: Vec<char>,
}

impl Normaliser {
    pub(crate) fn parse(file: &mut ModelFile<'_>) -> Result<Self, ModelError> {
        let from = file.take_u32("tokenizer.normalise.from", None)?;
        let offsets = file.take_u32("tokenizer.normalise.offsets", Some(from.len() + 1))?;
        let to = file.take_u32("tokenizer.normalise.to", None)?;
        if !from.is_sorted_by(|left, right| left < right) {
            return Err(invalid("tokenizer.normalise.from", "code points must ascend"));
        }
        let last = offsets.last().map_or(0, |&last| last as usize);
        if !offsets.is_sorted() || last > to.len() {
            let reason = "offsets must ascend and lie within tokenizer.normalise.to";
            return Err(invalid("tokenizer.normalise.offsets", reason));
        }
        let to: Option<Vec<char>> = to.into_iter().map(char::from_u32).collect();
        let to =
            to.ok_or_else(|| invalid("tokenizer.normalise.to", "a number is not a Unicode scalar value"))?;
        Ok(Self { from, offsets, to })
    }

    /// The text with replaced characters, with one [`METASPACE`] at the start and for each run of spaces, and none at
    /// the end. Control characters and line breaks count as spaces.
    pub(crate) fn normalise(&self, text: &str) -> String {
        let mut normalised = String::with_capacity(text.len() + text.len() / 4 + METASPACE.len_utf8());
        let mut is_after_space = true;
        let mut push = |character: char| {
            if character == ' ' {
                is_after_space = true;
                return;
            }
            if std::mem::take(&mut is_after_space) {
                normalised.push(METASPACE);
            }
            normalised.push(character);
        };
        for character in text.chars() {
            if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
                push(' ');
                continue;
            }
            match self.replacement(character) {
                Some(characters) => characters.iter().for_each(|character| push(*character)),
                None => push(character),
            }
        }
        normalised
    }

    fn replacement(&self, character: char) -> Option<&[char]> {
        let index = self.from.binary_search(&u32::from(character)).ok()?;
        let start = *self.offsets.get(index)?;
        let end = *self.offsets.get(index + 1)?;
        self.to.get(start as usize..end as usize)
    }
}

fn invalid(name: &'static str, reason: &'static str) -> ModelError {
    ModelError::Tokenizer { name, reason }
}
