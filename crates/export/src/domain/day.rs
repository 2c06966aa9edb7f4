//! The evaluations of one day in columns, which lists and summaries read instead of rows. A day is a UTC day, by the start of the
//! conversation.

use std::collections::HashMap;

use assay_contracts::agent::AgentFacts;
use assay_contracts::evaluation::{Confidence, Score};
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use serde::{Deserialize, Serialize};

use super::evaluation_facts::Scores;
use super::facets::Facets;

/// Version of the layout of [`Day::to_bytes`].
const VERSION: u8 = 1;
/// Stored bytes of one evaluation: codes, sets, scores, offset and index of its texts.
const ROW_BYTES: usize = 4 + 8 + 4 + 4 + 4;
/// Version, number of evaluations and size of the texts.
const HEADER_BYTES: usize = 1 + 4 + 4;

/// Number of a day: days since 1970-01-01.
pub fn day_of(moment: Timestamp) -> i64 {
    moment.as_millis().div_euclid(DAY_MILLIS)
}

/// First moment of a day, in milliseconds.
pub fn start_of(day: i64) -> i64 {
    day.saturating_mul(DAY_MILLIS)
}

/// Maximum size of the distinct texts of a day: a fixed part, and a part for each evaluation. Sources are texts of callers: a day
/// with a different one for each evaluation would need much more memory than its columns.
const FIXED_TEXT_BYTES: usize = 64 * 1_024;
const TEXT_BYTES_PER_ROW: usize = 64;

/// Texts that evaluations of a day share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Texts {
    pub language: Option<String>,
    /// `None` when the day has too many distinct texts: see [`Day::lacks_texts`].
    #[serde(flatten)]
    pub origin: Option<Origin>,
}

/// Where a conversation came from, and who took part.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    pub source: String,
    /// Sorted by id.
    pub agents: Vec<Agent>,
}

/// A registered agent with its display name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Agent {
    pub id: String,
    pub name: String,
}

/// One evaluation, without its ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Milliseconds since the beginning of the day.
    pub offset: u32,
    pub facets: Facets,
    pub scores: PackedScores,
    /// Index into [`Day::texts`].
    pub text_index: u32,
}

/// Scores and confidence in one integer; 0 without scores. From the lowest bit on: four scores in tenths with 6 bits each, then the
/// confidence in hundredths with 8 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedScores(u32);

/// The evaluations of one day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Day {
    codes: Vec<u32>,
    sets: Vec<u64>,
    scores: Vec<u32>,
    offsets: Vec<u32>,
    text_indices: Vec<u32>,
    pub texts: Vec<Texts>,
}

/// The stored columns cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the columns of a day have an unknown layout")]
pub struct UnknownLayout;

impl PackedScores {
    pub fn of(scores: Option<&Scores>) -> Self {
        let Some(scores) = scores else { return Self(0) };
        let tenths =
            [scores.axis, scores.resolution_accuracy, scores.interaction_effort, scores.handoff_smoothness];
        let packed = tenths.iter().rev().fold(0, |packed, score| packed << 6 | u32::from(score.tenths()));
        Self(packed | u32::from(scores.confidence.hundredths()) << 24)
    }

    pub const fn is_scored(self) -> bool {
        self.0 != 0
    }

    /// A score by number: AXIS, resolution accuracy, interaction effort, handoff smoothness; 0 without scores.
    pub const fn tenths(self, number: u32) -> u32 {
        self.0 >> (6 * number) & 63
    }

    /// The confidence.
    pub const fn hundredths(self) -> u32 {
        self.0 >> 24
    }

    pub fn unpack(self) -> Option<Scores> {
        let score = |number| Score::from_tenths(i64::from(self.tenths(number)));
        Some(Scores {
            axis: score(0)?,
            resolution_accuracy: score(1)?,
            interaction_effort: score(2)?,
            handoff_smoothness: score(3)?,
            confidence: Confidence::from_hundredths(i64::from(self.hundredths()))?,
        })
    }
}

impl Texts {
    pub fn new(source: String, language: Option<String>, agents: &[AgentFacts]) -> Self {
        let mut agents: Vec<Agent> =
            agents.iter().map(|agent| Agent { id: agent.id.to_string(), name: agent.name.clone() }).collect();
        agents.sort_unstable();
        agents.dedup_by(|one, other| one.id == other.id);
        Self { language, origin: Some(Origin { source, agents }) }
    }

    /// The registered agents; none when the origin is not known.
    pub fn agents(&self) -> &[Agent] {
        self.origin.as_ref().map_or(&[], |origin| &origin.agents)
    }

    /// Approximate size in memory, in bytes, with an estimate of what each value takes beside its text.
    pub fn weight(&self) -> usize {
        let source = self.origin.as_ref().map_or(0, |origin| origin.source.len());
        let agents = self.agents().iter().map(|agent| 64 + agent.id.len() + agent.name.len());
        128 + source + agents.sum::<usize>()
    }
}

impl Day {
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let facets =
            self.codes.iter().zip(&self.sets).map(|(codes, sets)| Facets { codes: *codes, sets: *sets });
        let rest = self.scores.iter().zip(&self.offsets).zip(&self.text_indices);
        facets.zip(rest).map(|(facets, ((scores, offset), text_index))| Row {
            offset: *offset,
            facets,
            scores: PackedScores(*scores),
            text_index: *text_index,
        })
    }

    /// Whether sources and agents of some evaluations are not known, because the day has too many distinct texts. Filters by them
    /// need rows.
    pub fn lacks_texts(&self) -> bool {
        self.texts.iter().any(|texts| texts.origin.is_none())
    }

    /// Approximate size in memory, in bytes.
    pub fn weight(&self) -> u64 {
        let texts: usize = self.texts.iter().map(Texts::weight).sum();
        u64::try_from(256 + self.len() * ROW_BYTES + texts).unwrap_or(u64::MAX)
    }

    /// The stored form.
    ///
    /// # Errors
    /// When the texts cannot be written as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let texts = serde_json::to_vec(&self.texts)?;
        let mut bytes = Vec::with_capacity(HEADER_BYTES + texts.len() + self.len() * ROW_BYTES);
        bytes.push(VERSION);
        bytes.extend(u32::try_from(self.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(u32::try_from(texts.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend(texts);
        bytes.extend(self.sets.iter().flat_map(|set| set.to_le_bytes()));
        for column in [&self.codes, &self.scores, &self.offsets, &self.text_indices] {
            bytes.extend(column.iter().flat_map(|value| value.to_le_bytes()));
        }
        Ok(bytes)
    }

    /// Reads [`Self::to_bytes`].
    ///
    /// # Errors
    /// For any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnknownLayout> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(UnknownLayout)?;
        let [version, a, b, c, d, e, f, g, h] = *header;
        let (count, text_bytes) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let count = usize::try_from(count).map_err(|_| UnknownLayout)?;
        let text_bytes = usize::try_from(text_bytes).map_err(|_| UnknownLayout)?;
        let (texts, rest) = rest.split_at_checked(text_bytes).ok_or(UnknownLayout)?;
        if version != VERSION || count.checked_mul(ROW_BYTES) != Some(rest.len()) {
            return Err(UnknownLayout);
        }
        let texts: Vec<Texts> = serde_json::from_slice(texts).map_err(|_| UnknownLayout)?;
        let (sets, mut rest) = rest.split_at(count * 8);
        let mut next_column = || {
            let (column, further) = rest.split_at(count * 4);
            rest = further;
            column.as_chunks::<4>().0.iter().map(|value| u32::from_le_bytes(*value)).collect::<Vec<_>>()
        };
        let (codes, scores, offsets, text_indices) =
            (next_column(), next_column(), next_column(), next_column());
        let sets = sets.as_chunks::<8>().0.iter().map(|set| u64::from_le_bytes(*set)).collect();
        let text_count = u32::try_from(texts.len()).map_err(|_| UnknownLayout)?;
        if text_indices.iter().any(|index| *index >= text_count) {
            return Err(UnknownLayout);
        }
        Ok(Self { codes, sets, scores, offsets, text_indices, texts })
    }
}

/// Collects the evaluations of one day.
#[derive(Debug, Default)]
pub struct DayBuilder {
    day: Day,
    /// Indexes of the texts that the day has already.
    text_indices: HashMap<Texts, u32>,
    text_bytes: usize,
}

impl DayBuilder {
    pub fn push(&mut self, started_at: Timestamp, facets: Facets, scores: PackedScores, texts: &Texts) {
        let text_index = self.index_of(texts);
        let offset = started_at.as_millis().rem_euclid(DAY_MILLIS);
        self.day.offsets.push(u32::try_from(offset).unwrap_or_default());
        self.day.codes.push(facets.codes);
        self.day.sets.push(facets.sets);
        self.day.scores.push(scores.0);
        self.day.text_indices.push(text_index);
    }

    /// The index of these texts, which are added if the day lacks them; without their origin if they would exceed the maximum size.
    fn index_of(&mut self, texts: &Texts) -> u32 {
        if let Some(index) = self.text_indices.get(texts) {
            return *index;
        }
        let allowed = FIXED_TEXT_BYTES + TEXT_BYTES_PER_ROW * self.day.len();
        let weight = texts.weight();
        if texts.origin.is_some() && self.text_bytes + weight > allowed {
            return self.index_of(&Texts { language: texts.language.clone(), origin: None });
        }
        let index = u32::try_from(self.day.texts.len()).unwrap_or(u32::MAX);
        self.text_bytes += weight;
        self.day.texts.push(texts.clone());
        self.text_indices.insert(texts.clone(), index);
        index
    }

    pub fn finish(self) -> Day {
        self.day
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day() -> Day {
        let mut builder = DayBuilder::default();
        let texts = |source: &str| Texts::new(source.to_owned(), Some("en".to_owned()), &[]);
        for number in 0..5 {
            let facets = Facets { codes: 7 * number, sets: u64::from(number) << 50 };
            let scores = Scores {
                axis: Score::from_tenths(10 + i64::from(number)).unwrap(),
                resolution_accuracy: Score::MAX,
                interaction_effort: Score::MIN,
                handoff_smoothness: Score::MAX,
                confidence: Confidence::from_hundredths(100).unwrap(),
            };
            let packed = PackedScores::of((number > 0).then_some(&scores));
            assert_eq!(packed.unpack(), (number > 0).then_some(scores));
            let moment = Timestamp::saturating_from_millis(3 * DAY_MILLIS + i64::from(number));
            builder.push(moment, facets, packed, &texts(if number % 2 == 0 { "a" } else { "b" }));
        }
        builder.finish()
    }

    #[test]
    fn day_is_stored_and_read_again() {
        let day = day();
        assert_eq!((day.len(), day.texts.len(), day.rows().nth(4).unwrap().offset), (5, 2, 4));
        assert_eq!(Day::from_bytes(&day.to_bytes().unwrap()), Ok(day));
        assert_eq!(Day::from_bytes(&Day::default().to_bytes().unwrap()), Ok(Day::default()));
    }

    #[test]
    fn texts_of_a_day_stay_in_proportion_to_its_rows() {
        let mut builder = DayBuilder::default();
        for number in 0..20_000 {
            let texts = Texts::new(format!("{number:01024}"), Some("en".to_owned()), &[]);
            builder.push(Timestamp::MIN, Facets::default(), PackedScores::default(), &texts);
        }
        let day = builder.finish();
        let rows = 20_000 * u64::try_from(ROW_BYTES + TEXT_BYTES_PER_ROW).unwrap();
        assert!(day.weight() < rows + 2 * u64::try_from(FIXED_TEXT_BYTES).unwrap(), "{}", day.weight());
        assert_eq!((day.len(), day.lacks_texts()), (20_000, true));
        assert_eq!(Day::from_bytes(&day.to_bytes().unwrap()), Ok(day));
    }

    #[test]
    fn damaged_day_is_refused() {
        let bytes = day().to_bytes().unwrap();
        for length in 0..bytes.len() {
            assert_eq!(Day::from_bytes(&bytes[..length]), Err(UnknownLayout), "{length}");
        }
        let mut other_version = bytes.clone();
        other_version[0] = VERSION + 1;
        assert_eq!(Day::from_bytes(&other_version), Err(UnknownLayout));
        let mut invalid_index = bytes;
        *invalid_index.last_mut().unwrap() = 9;
        assert_eq!(Day::from_bytes(&invalid_index), Err(UnknownLayout));
    }
}
