//! Text to ids: SentencePiece's unigram model, as XLM-RoBERTa uses it.
//!
//! Viterbi segmentation (T. Kudo, "Subword Regularization", 2018): of all ways to cut a text into pieces, the one with the
//! highest sum of scores.

mod normalise;
mod trie;

use crate::error::ModelError;
use crate::file::ModelFile;
use crate::tokenizer::normalise::Normaliser;
use crate::tokenizer::trie::Trie;

/// How far the log-probability of an unknown character is below that of the rarest piece.
const UNKNOWN_PENALTY: f64 = 10.0;

pub(crate) struct Tokenizer {
    normaliser: Normaliser,
    pieces: Trie,
    scores: Vec<f32>,
    unknown: u32,
    unknown_score: f64,
}

/// The best segmentation that ends at an offset of the text.
#[derive(Clone, Copy)]
struct BestPath {
    score: f64,
    /// Start of its last piece.
    from: usize,
    id: u32,
}

impl Tokenizer {
    pub(crate) fn parse(file: &mut ModelFile<'_>) -> Result<Self, ModelError> {
        let (vocabulary, bos, unknown) = (file.header.vocabulary, file.header.bos_id, file.header.unk_id);
        let bytes = file.take_u8("tokenizer.pieces")?;
        let offsets = file.take_u32("tokenizer.offsets", Some(vocabulary.saturating_add(1)))?;
        let scores = file.take_f32("tokenizer.scores", &[vocabulary])?;
        let normaliser = Normaliser::parse(file)?;

        let mut pieces = Trie::default();
        let mut lowest = f32::INFINITY;
        for (id, (bounds, score)) in (0..).zip(offsets.windows(2).zip(&scores)) {
            let piece = piece_between(bytes, bounds)?;
            // Markers cannot be produced from text.
            if piece.is_empty() || id == bos || id == unknown {
                continue;
            }
            pieces.insert(piece.as_bytes(), id);
            lowest = lowest.min(*score);
        }
        let lowest = if lowest.is_finite() { f64::from(lowest) } else { 0.0 };
        Ok(Self { normaliser, pieces, scores, unknown, unknown_score: lowest - UNKNOWN_PENALTY })
    }

    /// Appends the ids of `text`, without markers at the start or the end. Adjacent unknown characters become one unknown id;
    /// a blank text has no ids.
    pub(crate) fn tokenize(&self, text: &str, ids: &mut Vec<u32>) {
        let normalised = self.normaliser.normalise(text);
        let paths = self.best_paths(&normalised);
        let start = ids.len();
        let mut end = normalised.len();
        while let Some(path) = paths.get(end).filter(|_| end > 0) {
            let is_repeated =
                path.id == self.unknown && ids.len() > start && ids.last() == Some(&self.unknown);
            if !is_repeated {
                ids.push(path.id);
            }
            end = path.from;
        }
        ids[start..].reverse();
    }

    /// The best path to each byte offset of `text`; only character boundaries are reachable.
    fn best_paths(&self, text: &str) -> Vec<BestPath> {
        let unreachable = BestPath { score: f64::NEG_INFINITY, from: 0, id: self.unknown };
        let mut paths = vec![unreachable; text.len() + 1];
        paths[0].score = 0.0;
        let bytes = text.as_bytes();
        for (from, character) in text.char_indices() {
            let score_so_far = paths[from].score;
            self.pieces.prefixes(&bytes[from..], |length, id| {
                let score = score_so_far + f64::from(self.scores[id as usize]);
                keep_better(&mut paths[from + length], BestPath { score, from, id });
            });
            let path = BestPath { score: score_so_far + self.unknown_score, from, id: self.unknown };
            keep_better(&mut paths[from + character.len_utf8()], path);
        }
        paths
    }
}

/// On a tie the first path stays.
fn keep_better(best: &mut BestPath, path: BestPath) {
    if path.score > best.score {
        *best = path;
    }
}

fn piece_between<'a>(bytes: &'a [u8], bounds: &[u32]) -> Result<&'a str, ModelError> {
    let &[start, end] = bounds else { return Ok("") };
    let bytes = bytes.get(start as usize..end as usize).ok_or(ModelError::Tokenizer {
        name: "tokenizer.offsets",
        reason: "offsets must ascend and lie within tokenizer.pieces",
    })?;
    std::str::from_utf8(bytes)
        .map_err(|_| ModelError::Tokenizer { name: "tokenizer.pieces", reason: "a piece is not UTF-8" })
}
