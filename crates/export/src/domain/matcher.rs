//! Applies filters to the columns of days. They select the same rows as the conditions of the stores.

use std::ops::{Range, RangeInclusive};

use assay_contracts::evaluation::{Named, Score};
use assay_contracts::evaluations::{EvaluationFilters, OrNone, ScoreFilter};

use super::day::{Origin, Row, Texts, start_of};
use super::facets::{self, CodeField, SetField, bit_of, code_of};

/// Compiled filters, except those by external id and by words, which need rows: see [`needs_rows`].
#[derive(Debug)]
pub struct Matcher {
    /// One bit for each accepted code of a field.
    codes: Vec<(CodeField, u32)>,
    /// The accepted bits of a field, and whether the empty set is accepted.
    sets: Vec<(SetField, u64, bool)>,
    /// The number of a score, and one bit for each accepted value in tenths.
    scores: Vec<(u32, u64)>,
    /// In hundredths.
    confidence: Option<RangeInclusive<u32>>,
    sources: Vec<String>,
    languages: Vec<String>,
    agents: Vec<String>,
    or_without_agents: bool,
    /// Both ends, in milliseconds.
    period: (i64, i64),
}

/// The filter for the rows of one day.
#[derive(Debug)]
pub struct DayMatcher<'m> {
    matcher: &'m Matcher,
    /// Whether they match, by index of the day's texts.
    texts: Vec<bool>,
    /// The period, in milliseconds since the beginning of the day.
    offsets: Range<i64>,
}

/// Whether the filters compare texts that columns of days do not have.
pub fn needs_rows(filters: &EvaluationFilters) -> bool {
    !filters.external_id.is_empty() || !filters.subject.is_empty() || filters.search.is_some()
}

/// Whether the filters compare origins, which days with too many distinct texts lack: see [`super::day::Day::lacks_texts`].
pub fn has_origin_filter(filters: &EvaluationFilters) -> bool {
    !filters.source.is_empty() || !filters.agent.is_empty()
}

impl Matcher {
    pub fn new(filters: &EvaluationFilters) -> Self {
        let mut matcher = Self {
            codes: Vec::new(),
            sets: Vec::new(),
            scores: Vec::new(),
            confidence: None,
            sources: filters.source.clone(),
            languages: filters.language.clone(),
            agents: filters.agent.iter().filter_map(|agent| Some(agent.value()?.to_string())).collect(),
            or_without_agents: filters.agent.contains(&OrNone::None),
            period: (
                filters.from.map_or(i64::MIN, |from| from.as_millis()),
                filters.to.map_or(i64::MAX, |to| to.as_millis()),
            ),
        };
        matcher.accept_codes(facets::STATUS, &filters.status);
        matcher.accept_codes(facets::INVOLVEMENT, &filters.involvement);
        matcher.accept_codes(facets::RESOLUTION, &filters.resolution);
        matcher.accept_codes(facets::RESOLVED_BY, &filters.resolved_by);
        matcher.accept_codes(facets::BASIS, &filters.basis);
        matcher.accept_codes(facets::CHARGE, &filters.charge);
        matcher.accept_codes(facets::HANDOFF, &filters.handoff);
        matcher.accept_codes(facets::BAND, &filters.band);
        matcher.accept_codes(facets::SCORER, &filters.scorer);
        matcher.accept_sets(facets::CHARGE_REASONS, &filters.charge_reason);
        matcher.accept_sets(facets::FLAGS, &filters.flag);
        if !filters.ai_tool.is_empty() {
            let tools = filters.ai_tool.iter().filter_map(|tool| tool.value());
            let bits = tools.fold(0, |bits, tool| bits | bit_of(tool));
            matcher.sets.push((facets::AI_TOOLS, bits, filters.ai_tool.contains(&OrNone::None)));
        }
        for (number, (_, score)) in (0..).zip(filters.scores()) {
            if let Some(allowed) = allowed_tenths(score) {
                matcher.scores.push((number, allowed));
            }
        }
        if filters.confidence_min.or(filters.confidence_max).is_some() {
            let min = filters.confidence_min.map_or(0, |min| u32::from(min.hundredths()));
            let max = filters.confidence_max.map_or(100, |max| u32::from(max.hundredths()));
            matcher.confidence = Some(min..=max);
        }
        matcher
    }

    fn accept_codes<T: Named>(&mut self, field: CodeField, values: &[T]) {
        if !values.is_empty() {
            self.codes.push((field, values.iter().fold(0, |mask, value| mask | 1 << code_of(*value))));
        }
    }

    fn accept_sets<T: Named>(&mut self, field: SetField, values: &[T]) {
        if !values.is_empty() {
            self.sets.push((field, values.iter().fold(0, |bits, value| bits | bit_of(*value)), false));
        }
    }

    /// The filter for the rows of one day, whose texts are compared once.
    pub fn for_day<'m>(&'m self, day: i64, texts: &[Texts]) -> DayMatcher<'m> {
        let (from, to) = self.period;
        let start = start_of(day);
        DayMatcher {
            matcher: self,
            texts: texts.iter().map(|texts| self.matches_texts(texts)).collect(),
            offsets: from.saturating_sub(start)..to.saturating_sub(start),
        }
    }

    /// Texts without an origin match every filter by origin. It is not used there: if a day lacks origins, such filters are applied
    /// to rows, with the conditions of the store (see [`has_origin_filter`]).
    fn matches_texts(&self, texts: &Texts) -> bool {
        let matches_origin = |Origin { source, agents }: &Origin| {
            let is_any_agent = self.agents.is_empty() && !self.or_without_agents;
            let has_agent = agents.iter().any(|agent| self.agents.contains(&agent.id))
                || (self.or_without_agents && agents.is_empty());
            (is_any_agent || has_agent) && (self.sources.is_empty() || self.sources.contains(source))
        };
        let has_language = |language: &String| self.languages.contains(language);
        texts.origin.as_ref().is_none_or(matches_origin)
            && (self.languages.is_empty() || texts.language.as_ref().is_some_and(has_language))
    }
}

impl DayMatcher<'_> {
    #[inline]
    pub fn matches(&self, row: &Row) -> bool {
        let Matcher { codes, sets, scores, confidence, .. } = self.matcher;
        let has_code = |(field, accepted): &(CodeField, u32)| accepted >> row.facets.code(*field) & 1 == 1;
        let has_score = |(number, accepted): &(u32, u64)| accepted >> row.scores.tenths(*number) & 1 == 1;
        let has_set = |(field, bits, or_empty): &(SetField, u64, bool)| {
            let set = row.facets.set(*field);
            set & bits != 0 || (*or_empty && set == 0 && row.facets.is_evaluated())
        };
        let has_confidence = |accepted: &RangeInclusive<u32>| {
            row.scores.is_scored() && accepted.contains(&row.scores.hundredths())
        };
        codes.iter().all(has_code)
            && scores.iter().all(has_score)
            && sets.iter().all(has_set)
            && confidence.as_ref().is_none_or(has_confidence)
            && self.offsets.contains(&i64::from(row.offset))
            && self.texts.get(row.text_index as usize).is_some_and(|matches| *matches)
    }
}

/// One bit for each score, in tenths, that satisfies a filter; `None` without a filter.
pub fn allowed_tenths(filter: ScoreFilter<'_>) -> Option<u64> {
    if filter.bands.is_empty() && filter.min.is_none() && filter.max.is_none() {
        return None;
    }
    let scores = (10..=50).filter_map(Score::from_tenths).filter(|score| filter.matches(*score));
    Some(scores.fold(0, |bits, score| bits | 1 << score.tenths()))
}
