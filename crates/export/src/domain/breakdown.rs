//! Evaluations by the values of one or two dimensions.

use std::cmp::Reverse;
use std::collections::HashMap;

use assay_contracts::conversation::AiTool;
use assay_contracts::evaluation::{
    AiInvolvement, AxisBand, ChargeAssessment, ChargeReason, Flag, HandoffState, Named, ResolutionBasis,
    ResolutionStatus, ResolvedBy, ScorerKind,
};
use assay_contracts::evaluations::{Breakdown, Dimension, Group, ResultStatus};

use super::day::{Agent, Day, Row, Texts};
use super::facets::{self, CodeField, SetField, bit_of, value_of};
use super::tally::Tally;

/// The groups within a group, by value.
type InnerGroups = HashMap<Option<String>, Tally>;

/// The raw value of each dimension in a row: a code, a set or the number of a list of texts. 0 in place of a missing second dimension.
type GroupKey = [u64; 2];

/// Maximum number of groups on a level.
const MAX_GROUPS: usize = 200;
/// Maximum number of groups of a breakdown, those within groups included.
const MAX_ALL_GROUPS: usize = 2_000;
/// Maximum number of distinct values, or pairs of values, to count. With more, a breakdown has no groups, because the largest ones
/// are not known.
const MAX_DISTINCT_VALUES: usize = 20_000;

/// The field of a row that has the value of a dimension, and the filter values that select rows with it.
#[derive(Debug, Clone, Copy)]
enum RowField {
    /// The name of the value.
    Code(CodeField, fn(u64) -> Option<String>),
    /// The names of the values, and the filter value for none.
    Set(SetField, fn(u64) -> Vec<Option<String>>, Option<&'static str>),
    /// Texts of the row, and the filter value for none.
    Texts(fn(&Texts) -> Vec<String>, Option<&'static str>),
}

/// Lists of texts of one dimension, each with a number.
#[derive(Debug, Default)]
struct InternedTexts {
    numbers: HashMap<Vec<String>, u64>,
    lists: Vec<Vec<String>>,
    /// The numbers of the current day's lists, by index of its texts.
    of_day: Vec<u64>,
}

/// Counts of rows by their key.
#[derive(Debug)]
pub struct Groups {
    dimensions: Vec<(Dimension, RowField, InternedTexts)>,
    /// Indexes of the tallies, by key.
    tally_indices: HashMap<GroupKey, usize>,
    /// The key of the previous row and the index of its tally.
    previous: Option<(GroupKey, usize)>,
    tallies: Vec<(GroupKey, Tally)>,
    /// There are too many distinct values, or a day lacks texts.
    is_incomplete: bool,
    /// The latest display names of agents by id.
    names: HashMap<String, String>,
}

impl Groups {
    pub fn new(by: &[Dimension]) -> Self {
        let dimensions = by
            .iter()
            .map(|dimension| (*dimension, row_field(*dimension), InternedTexts::default()))
            .collect();
        Self {
            dimensions,
            tally_indices: HashMap::new(),
            previous: None,
            tallies: Vec::new(),
            is_incomplete: false,
            names: HashMap::new(),
        }
    }

    /// Must be called before the rows of a day are added; days come in ascending order.
    pub fn begin_day(&mut self, day: &Day) {
        for (dimension, field, interned) in &mut self.dimensions {
            let RowField::Texts(list_of, _) = field else { continue };
            // Texts without an origin still have the language.
            self.is_incomplete |= *dimension != Dimension::Language && day.lacks_texts();
            interned.begin_day(day.texts.iter().map(*list_of));
            if *dimension == Dimension::Agent {
                let agents = day.texts.iter().flat_map(Texts::agents);
                self.names.extend(agents.map(|Agent { id, name }| (id.clone(), name.clone())));
            }
        }
    }

    #[inline]
    pub fn add(&mut self, row: &Row) {
        if self.dimensions.is_empty() || self.is_incomplete {
            return;
        }
        let mut key = GroupKey::default();
        for ((_, field, interned), raw) in self.dimensions.iter().zip(&mut key) {
            *raw = match field {
                RowField::Code(field, _) => u64::from(row.facets.code(*field)),
                // A bit of their own, because they have no sets.
                RowField::Set(field, ..) if !row.facets.is_evaluated() => 1 << field.bits,
                RowField::Set(field, ..) => row.facets.set(*field),
                RowField::Texts(..) => {
                    interned.of_day.get(row.text_index as usize).copied().unwrap_or_default()
                }
            };
        }
        let index = match self.previous {
            Some((previous_key, index)) if previous_key == key => index,
            _ => *self.tally_indices.entry(key).or_insert_with(|| {
                self.tallies.push((key, Tally::default()));
                self.tallies.len() - 1
            }),
        };
        if self.tallies.len() > MAX_DISTINCT_VALUES {
            self.is_incomplete = true;
            return;
        }
        self.previous = Some((key, index));
        self.tallies[index].1.add(row);
    }

    /// `None` without dimensions.
    pub fn finish(self) -> Option<Breakdown> {
        if self.dimensions.is_empty() {
            return None;
        }
        let by = self.dimensions.iter().map(|(dimension, ..)| *dimension).collect();
        if self.is_incomplete {
            return Some(Breakdown { by, groups: Vec::new(), truncated: true });
        }
        let mut outer: HashMap<Option<String>, (Tally, InnerGroups)> = HashMap::new();
        for (key, tally) in &self.tallies {
            for value in self.values(0, key[0]) {
                let (total, inner) = outer.entry(value).or_default();
                total.merge(tally);
                if self.dimensions.len() > 1 {
                    for value in self.values(1, key[1]) {
                        inner.entry(value).or_default().merge(tally);
                    }
                }
            }
        }
        let mut truncated = false;
        let groups = outer.into_iter().map(|(value, (tally, inner))| {
            let inner = inner.into_iter().map(|(value, tally)| self.group(1, value, &tally, Vec::new()));
            let inner = largest(inner.collect(), &mut truncated);
            self.group(0, value, &tally, inner)
        });
        let groups: Vec<Group> = groups.collect();
        let mut groups = largest(groups, &mut truncated);
        let mut remaining = MAX_ALL_GROUPS - groups.len();
        for group in &mut groups {
            truncated |= group.groups.len() > remaining;
            group.groups.truncate(remaining);
            remaining -= group.groups.len();
        }
        Some(Breakdown { by, groups, truncated })
    }

    fn group(&self, level: usize, value: Option<String>, tally: &Tally, groups: Vec<Group>) -> Group {
        let is_agent = self.dimensions[level].0 == Dimension::Agent;
        let label = value.as_ref().filter(|_| is_agent).and_then(|id| self.names.get(id)).cloned();
        Group { value, label, measures: tally.measures(), groups }
    }

    /// The filter values that select rows with a raw value.
    fn values(&self, level: usize, raw: u64) -> Vec<Option<String>> {
        let (_, field, interned) = &self.dimensions[level];
        let (values, none) = match field {
            RowField::Code(_, name) => return vec![name(raw)],
            // The bit of failed evaluations.
            RowField::Set(field, ..) if raw >> field.bits != 0 => return vec![None],
            RowField::Set(_, names, none) => (names(raw), none),
            RowField::Texts(_, none) => (interned.list(raw), none),
        };
        if values.is_empty() { vec![none.map(str::to_owned)] } else { values }
    }
}

impl InternedTexts {
    fn begin_day(&mut self, lists: impl Iterator<Item = Vec<String>>) {
        self.of_day.clear();
        for list in lists {
            let number = *self.numbers.entry(list).or_insert_with_key(|list| {
                self.lists.push(list.clone());
                self.lists.len() as u64 - 1
            });
            self.of_day.push(number);
        }
    }

    fn list(&self, number: u64) -> Vec<Option<String>> {
        let list = usize::try_from(number).ok().and_then(|number| self.lists.get(number));
        list.into_iter().flatten().cloned().map(Some).collect()
    }
}

fn row_field(dimension: Dimension) -> RowField {
    match dimension {
        Dimension::AiTool => RowField::Set(facets::AI_TOOLS, set_names::<AiTool>, Some("none")),
        Dimension::ChargeReason => RowField::Set(facets::CHARGE_REASONS, set_names::<ChargeReason>, None),
        Dimension::Flag => RowField::Set(facets::FLAGS, set_names::<Flag>, None),
        Dimension::Agent => RowField::Texts(
            |texts| texts.agents().iter().map(|agent| agent.id.clone()).collect(),
            Some("none"),
        ),
        Dimension::Source => {
            RowField::Texts(|texts| texts.origin.iter().map(|origin| origin.source.clone()).collect(), None)
        }
        Dimension::Language => RowField::Texts(|texts| texts.language.iter().cloned().collect(), None),
        Dimension::Involvement => RowField::Code(facets::INVOLVEMENT, code_name::<AiInvolvement>),
        Dimension::Resolution => RowField::Code(facets::RESOLUTION, code_name::<ResolutionStatus>),
        Dimension::ResolvedBy => RowField::Code(facets::RESOLVED_BY, code_name::<ResolvedBy>),
        Dimension::Basis => RowField::Code(facets::BASIS, code_name::<ResolutionBasis>),
        Dimension::Charge => RowField::Code(facets::CHARGE, code_name::<ChargeAssessment>),
        Dimension::Handoff => RowField::Code(facets::HANDOFF, code_name::<HandoffState>),
        Dimension::Band => RowField::Code(facets::BAND, code_name::<AxisBand>),
        Dimension::Scorer => RowField::Code(facets::SCORER, code_name::<ScorerKind>),
        Dimension::Status => RowField::Code(facets::STATUS, code_name::<ResultStatus>),
    }
}

fn set_names<T: Named>(set: u64) -> Vec<Option<String>> {
    let values = T::ALL.iter().filter(|value| set & bit_of(**value) != 0);
    values.map(|value| Some(value.name().to_owned())).collect()
}

fn code_name<T: Named>(raw: u64) -> Option<String> {
    let value = u32::try_from(raw).ok().and_then(value_of::<T>)?;
    Some(value.name().to_owned())
}

/// The groups with most evaluations, in that order, then by value.
fn largest(mut groups: Vec<Group>, truncated: &mut bool) -> Vec<Group> {
    groups.sort_by(|one, other| {
        (Reverse(one.measures.count), &one.value).cmp(&(Reverse(other.measures.count), &other.value))
    });
    *truncated |= groups.len() > MAX_GROUPS;
    groups.truncate(MAX_GROUPS);
    groups
}

#[cfg(test)]
mod tests {
    use assay_contracts::time::Timestamp;

    use super::super::day::{DayBuilder, PackedScores};
    use super::super::facets::Facets;
    use super::*;

    /// The breakdown of one row for each pair of a source and a language.
    fn breakdown(sources: u32, languages: u32, by: &[Dimension]) -> Breakdown {
        let mut groups = Groups::new(by);
        // Few sources a day, so that no day has too many texts.
        for first in (0..sources).step_by(10) {
            let mut day = DayBuilder::default();
            for source in first..(first + 10).min(sources) {
                for language in 0..languages {
                    let texts = Texts::new(format!("s{source}"), Some(format!("l{language}")), &[]);
                    day.push(Timestamp::MIN, Facets::default(), PackedScores::default(), &texts);
                }
            }
            let day = day.finish();
            assert!(!day.lacks_texts());
            groups.begin_day(&day);
            day.rows().for_each(|row| groups.add(&row));
        }
        groups.finish().unwrap()
    }

    #[test]
    fn breakdown_has_a_limit_over_both_levels() {
        let found = breakdown(180, 20, &[Dimension::Source, Dimension::Language]);
        let within: usize = found.groups.iter().map(|group| group.groups.len()).sum();
        assert_eq!((found.groups.len(), within, found.truncated), (180, MAX_ALL_GROUPS - 180, true));
        assert!(found.groups.iter().all(|group| group.measures.count == 20));
        let found = breakdown(50, 20, &[Dimension::Source, Dimension::Language]);
        let within: usize = found.groups.iter().map(|group| group.groups.len()).sum();
        assert_eq!((found.groups.len(), within, found.truncated), (50, 1_000, false));
    }

    #[test]
    fn breakdown_of_too_many_values_has_no_groups() {
        let found = breakdown(21_000, 1, &[Dimension::Source]);
        assert_eq!((found.groups.len(), found.truncated), (0, true));
        assert_eq!(breakdown(19_000, 1, &[Dimension::Source]).groups.len(), MAX_GROUPS);
    }
}
