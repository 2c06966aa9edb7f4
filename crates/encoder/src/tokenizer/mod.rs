//! Text to ids: SentencePiece's unigram model, as XLM-RoBERTa uses it.
//!
//! T. Kudo, "Subword Regularization", 2018: of all ways to cut a text into pieces the one whose scores sum to the most.

mod normalise;
mod trie;

use crate::error::ModelError;
use crate::file::ModelFile;
use crate::tokenizer::normalise::Normaliser;
use crate::tokenizer::trie::Trie;

/// How much less likely than the rarest piece a character is that no piece has.
const UNKNOWN_PENALTY: f64 = 10.0;

pub(crate) struct Tokenizer {
    normaliser: Normaliser,
    pieces: Trie,
    scores: Vec<f32>,
    unknown: u32,
    unknown_score: f64,
}

/// The best way to a place in the text.
#[derive(Clone, Copy)]
struct Step {
    score: f64,
    /// Where its last piece begins.
    from: usize,
    id: u32,
}

impl Tokenizer {
    pub(crate) fn parse(file: &mut ModelFile<'_>) -> Result<Self, ModelError> {
        let (vocabulary, bos, unknown) = (file.header.vocabulary, file.header.bos_id, file.header.unk_id);
        let bytes = file.u8("tokenizer.pieces")?;
        let offsets = file.u32("tokenizer.offsets", Some(vocabulary.saturating_add(1)))?;
        let scores = file.f32("tokenizer.scores", &[vocabulary])?;
        let normaliser = Normaliser::parse(file)?;

        let mut pieces = Trie::default();
        let mut lowest = f32::INFINITY;
        for (id, (bounds, score)) in (0..).zip(offsets.windows(2).zip(&scores)) {
            let piece = piece(bytes, bounds)?;
            // Texts must not be able to say what the markers say.
            if piece.is_empty() || id == bos || id == unknown {
                continue;
            }
            pieces.insert(piece.as_bytes(), id);
            lowest = lowest.min(*score);
        }
        let lowest = if lowest.is_finite() { f64::from(lowest) } else { 0.0 };
        Ok(Self { normaliser, pieces, scores, unknown, unknown_score: lowest - UNKNOWN_PENALTY })
    }

    /// Appends the ids of `text`, without markers in front or behind. Characters beside each other that no piece has
    /// are one unknown id; a text without anything but spaces has none.
    pub(crate) fn tokenize(&self, text: &str, ids: &mut Vec<u32>) {
        let normalised = self.normaliser.normalise(text);
        let steps = self.best_steps(&normalised);
        let start = ids.len();
        let mut end = normalised.len();
        while let Some(step) = steps.get(end).filter(|_| end > 0) {
            let repeated = step.id == self.unknown && ids.len() > start && ids.last() == Some(&self.unknown);
            if !repeated {
                ids.push(step.id);
            }
            end = step.from;
        }
        ids[start..].reverse();
    }

    /// For each place in `text`, in bytes, the best way to it. Only places between characters have one.
    fn best_steps(&self, text: &str) -> Vec<Step> {
        let nowhere = Step { score: f64::NEG_INFINITY, from: 0, id: self.unknown };
        let mut steps = vec![nowhere; text.len() + 1];
        steps[0].score = 0.0;
        let bytes = text.as_bytes();
        for (from, character) in text.char_indices() {
            let so_far = steps[from].score;
            self.pieces.prefixes(&bytes[from..], |length, id| {
                let score = so_far + f64::from(self.scores[id as usize]);
                improve(&mut steps[from + length], Step { score, from, id });
            });
            let step = Step { score: so_far + self.unknown_score, from, id: self.unknown };
            improve(&mut steps[from + character.len_utf8()], step);
        }
        steps
    }
}

/// The first of equally good ways stays.
fn improve(best: &mut Step, step: Step) {
    if step.score > best.score {
        *best = step;
    }
}

fn piece<'a>(bytes: &'a [u8], bounds: &[u32]) -> Result<&'a str, ModelError> {
    let &[start, end] = bounds else { return Ok("") };
    let bytes = bytes.get(start as usize..end as usize).ok_or(ModelError::Tokenizer {
        name: "tokenizer.offsets",
        reason: "offsets must rise and lie within tokenizer.pieces",
    })?;
    std::str::from_utf8(bytes)
        .map_err(|_| ModelError::Tokenizer { name: "tokenizer.pieces", reason: "a piece is not UTF-8" })
}
