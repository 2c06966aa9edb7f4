//! Compares lists, summaries and files of a filter with the expected rows.

use std::collections::BTreeMap;

use anyhow::Result;
use assay_contracts::evaluation::{AxisBand, ChargeAssessment, ChargeReason, Named, Score};
use assay_contracts::evaluations::{
    BandCounts, ChargeCounts, Dimension, DistributionStep, EvaluationFilters, EvaluationItem, Group,
    ItemEvaluation, ItemScores, Measures, ReasonCount, ResultStatus, Sort, SortKey, Step, Summary,
    SummaryQuery,
};
use assay_export::domain::ranking::ReadDirection;

use super::fixture::ReadModel;
use crate::list_order::{compare, ids, position_of};
use crate::random_evaluations::satisfies;

impl ReadModel {
    /// Compares the list, the summary and the file of a random filter with the expected rows.
    pub async fn check(&mut self) -> Result<()> {
        let filters = self.random.filters();
        let (key, descending) = (self.random.choose(SortKey::ALL), self.random.below(2) == 0);
        let sort = Sort { key, descending };
        let case = format!("{} sorted by {sort}", filters.to_query());
        let mut expected: Vec<EvaluationItem> =
            self.rows.values().filter(|row| satisfies(row, &filters)).cloned().collect();
        expected.sort_by(|one, other| compare(one, other, sort));
        let listed = self.list(&filters, sort).await?;
        assert_eq!(ids(&listed), ids(&expected), "{case}");
        assert_eq!(listed, expected, "{case}");
        let by: Vec<Dimension> =
            (0..self.random.below(3)).map(|_| self.random.choose(Dimension::ALL)).collect();
        let step = self.random.choose(&[None, Some(Step::Day), Some(Step::Week), Some(Step::Quarter)]);
        let by = if by.len() == 2 && by[0] == by[1] { vec![by[0]] } else { by };
        let summary =
            self.summary(SummaryQuery { filters: filters.clone(), by, step, compare: None }).await?;
        self.check_summary(&summary, &expected, &case);
        if let Some(breakdown) = &summary.breakdown {
            let rows: Vec<&EvaluationItem> = expected.iter().collect();
            self.check_groups(&breakdown.by, &breakdown.groups, &rows, &case);
            assert!(!breakdown.truncated, "{case}");
        }
        let mut in_file: Vec<&EvaluationItem> = expected.iter().collect();
        in_file.sort_by_key(|row| (row.ticket.started_at, row.ticket.id));
        let in_file: Vec<String> = in_file.iter().map(|row| row.ticket.id.to_string()).collect();
        assert_eq!(self.file(&filters).await?, in_file, "{case}");
        self.check_neighbours(&filters, sort, &expected, &case).await
    }

    fn check_summary(&self, summary: &Summary, rows: &[EvaluationItem], case: &str) {
        let all: Vec<&EvaluationItem> = rows.iter().collect();
        check_measures(&summary.totals, &all, case);
        let scores: Vec<_> = rows.iter().filter_map(|row| row.evaluation.scores).collect();
        let distributions = &summary.distributions;
        check_distribution(&distributions.axis, &scores, |scores| scores.axis, case);
        check_distribution(&distributions.resolution_accuracy, &scores, |one| one.resolution_accuracy, case);
        check_distribution(&distributions.interaction_effort, &scores, |one| one.interaction_effort, case);
        check_distribution(&distributions.handoff_smoothness, &scores, |one| one.handoff_smoothness, case);
        check_reasons(&summary.charge_reasons, rows, case);
        for point in summary.series.iter().flatten() {
            let period = point.period;
            let is_in = |row: &&EvaluationItem| (period.from..period.to).contains(&row.ticket.started_at);
            let in_part: Vec<&EvaluationItem> = rows.iter().filter(is_in).collect();
            check_measures(&point.measures, &in_part, &format!("{case}: {period:?}"));
        }
        if let Some(series) = &summary.series {
            let sum: u64 = series.iter().map(|point| point.measures.count).sum();
            assert_eq!(sum, summary.totals.count, "{case}: the series has every row");
        }
    }

    /// Expects one group for each value of the rows, with the number of its rows.
    fn check_groups(&self, by: &[Dimension], groups: &[Group], rows: &[&EvaluationItem], case: &str) {
        let found: BTreeMap<Option<String>, u64> =
            groups.iter().map(|group| (group.value.clone(), group.measures.count)).collect();
        assert_eq!(found.len(), groups.len(), "{case}: a value twice");
        let mut expected: BTreeMap<Option<String>, Vec<&EvaluationItem>> = BTreeMap::new();
        for row in rows {
            for value in values_of(by[0], row) {
                expected.entry(value).or_default().push(row);
            }
        }
        let counts: BTreeMap<_, _> =
            expected.iter().map(|(value, rows)| (value.clone(), rows.len() as u64)).collect();
        assert_eq!(found, counts, "{case}: {by:?}");
        for group in groups {
            let rows = &expected[&group.value];
            check_measures(&group.measures, rows, &format!("{case}: {by:?} {:?}", group.value));
            if by.len() > 1 {
                self.check_groups(&by[1..], &group.groups, rows, case);
            }
            // A filter by the value selects the rows with this value.
            let Some(value) = &group.value else { continue };
            let filters = EvaluationFilters::parse([(by[0].as_str(), value.clone())]).unwrap();
            let selected = self.rows.values().filter(|row| satisfies(row, &filters)).count();
            let all = self.rows.values().filter(|row| values_of(by[0], row).contains(&group.value)).count();
            assert_eq!(selected, all, "{case}: {by:?} {value}");
        }
    }

    /// Compares the rows before and after a random row, and the number of rows before it.
    async fn check_neighbours(
        &mut self,
        filters: &EvaluationFilters,
        sort: Sort,
        list: &[EvaluationItem],
        case: &str,
    ) -> Result<()> {
        if list.is_empty() {
            return Ok(());
        }
        let at = usize::try_from(self.random.below(list.len() as u64))?;
        let position = Some(position_of(&list[at], sort));
        let after = self.selection(filters, sort, position, ReadDirection::Forwards);
        let next = self.page(after, 1).await?;
        let before = self.selection(filters, sort, position, ReadDirection::Backwards);
        let previous = self.page(before.clone(), 1).await?;
        let id = |row: Option<&EvaluationItem>| row.map(|row| row.ticket.id);
        assert_eq!(next.first().map(|facts| facts.ticket.id), id(list.get(at + 1)), "{case}");
        let expected = at.checked_sub(1).and_then(|at| list.get(at));
        assert_eq!(previous.first().map(|facts| facts.ticket.id), id(expected), "{case}");
        assert_eq!(self.evaluations.count(before, 1_000_000).await?, at as u64, "{case}");
        let found = self.evaluations.find(self.organization_id, list[at].ticket.id, filters.clone()).await?;
        assert!(found.is_some_and(|(_, selected)| selected), "{case}");
        Ok(())
    }
}

/// Compares every count and every mean with those of the rows.
fn check_measures(found: &Measures, rows: &[&EvaluationItem], case: &str) {
    let count = |is: &dyn Fn(&ItemEvaluation) -> bool| {
        u64::try_from(rows.iter().filter(|row| is(&row.evaluation)).count()).unwrap()
    };
    let status = |status| count(&|evaluation| evaluation.status == status);
    let band = |band| count(&|evaluation| evaluation.scores.is_some_and(|scores| scores.band == band));
    let charge = |charge| count(&|evaluation| evaluation.charge == Some(charge));
    let expected = Measures {
        count: count(&|_| true),
        scored: status(ResultStatus::Scored),
        not_applicable: status(ResultStatus::NotApplicable),
        failed: status(ResultStatus::Failed),
        means: found.means,
        bands: BandCounts {
            excellent: band(AxisBand::Excellent),
            good: band(AxisBand::Good),
            mixed: band(AxisBand::Mixed),
            poor: band(AxisBand::Poor),
        },
        charges: ChargeCounts {
            supported: charge(ChargeAssessment::Supported),
            review: charge(ChargeAssessment::Review),
            disputed: charge(ChargeAssessment::Disputed),
            not_applicable: charge(ChargeAssessment::NotApplicable),
        },
    };
    assert_eq!(*found, expected, "{case}");
    let scores: Vec<ItemScores> = rows.iter().filter_map(|row| row.evaluation.scores).collect();
    assert_eq!(found.means.is_some(), !scores.is_empty(), "{case}");
    let Some(means) = found.means else { return };
    let expect = |found: f64, value: fn(&ItemScores) -> f64| {
        let mean = scores.iter().map(value).sum::<f64>() / scores.len() as f64;
        // Means are rounded to hundredths.
        assert!((found - mean).abs() < 0.0051, "{case}: {found} {mean}");
    };
    expect(means.axis, |scores| scores.axis.value());
    expect(means.resolution_accuracy, |scores| scores.resolution_accuracy.value());
    expect(means.interaction_effort, |scores| scores.interaction_effort.value());
    expect(means.handoff_smoothness, |scores| scores.handoff_smoothness.value());
    expect(means.confidence, |scores| scores.confidence.value());
}

/// Expects eight steps of half a point that count all scores.
fn check_distribution(
    steps: &[DistributionStep],
    scores: &[ItemScores],
    score: fn(&ItemScores) -> Score,
    case: &str,
) {
    let tenths = |one: &ItemScores| usize::from(score(one).tenths());
    let expected: Vec<(u8, u8, u64)> = (0..8)
        .map(|step| {
            let (min, max) = (10 + 5 * step, if step == 7 { 50 } else { 14 + 5 * step });
            let in_step =
                scores.iter().filter(|one| (usize::from(min)..=usize::from(max)).contains(&tenths(one)));
            (min, max, in_step.count() as u64)
        })
        .collect();
    let found: Vec<(u8, u8, u64)> =
        steps.iter().map(|step| (step.min.tenths(), step.max.tenths(), step.count)).collect();
    assert_eq!(found, expected, "{case}");
    assert_eq!(found.iter().map(|(.., count)| count).sum::<u64>(), scores.len() as u64, "{case}");
}

/// Expects every reason that occurs, with the number of rows of each charge assessment, most frequent first.
fn check_reasons(found: &[ReasonCount], rows: &[EvaluationItem], case: &str) {
    let mut expected: BTreeMap<ChargeReason, [u64; 5]> = BTreeMap::new();
    for row in rows {
        let charge = row.evaluation.charge.map_or("", |charge| charge.as_str());
        let assessments = ["supported", "review", "disputed", "not_applicable"];
        for reason in &row.evaluation.charge_reasons {
            let counts = expected.entry(*reason).or_default();
            counts[0] += 1;
            counts[1 + assessments.iter().position(|name| *name == charge).unwrap()] += 1;
        }
    }
    let all: BTreeMap<ChargeReason, [u64; 5]> = found
        .iter()
        .map(|counted| {
            let charges = counted.charges;
            let counts =
                [counted.count, charges.supported, charges.review, charges.disputed, charges.not_applicable];
            (counted.reason, counts)
        })
        .collect();
    assert_eq!(all, expected, "{case}");
    assert_eq!(all.len(), found.len(), "{case}: a reason twice");
    assert!(found.is_sorted_by(|one, other| one.count >= other.count), "{case}");
}

/// The values of a dimension that a row counts for, as they are documented.
fn values_of(dimension: Dimension, row: &EvaluationItem) -> Vec<Option<String>> {
    fn name<T: Named>(value: Option<T>) -> Vec<Option<String>> {
        vec![value.map(|value| value.name().to_owned())]
    }
    fn names<T: Named>(values: &[T], none: Option<&str>) -> Vec<Option<String>> {
        let names: Vec<_> = values.iter().map(|value| Some(value.name().to_owned())).collect();
        if names.is_empty() { vec![none.map(str::to_owned)] } else { names }
    }
    let (ticket, evaluation) = (&row.ticket, &row.evaluation);
    match dimension {
        Dimension::AiTool if evaluation.status == ResultStatus::Failed => vec![None],
        Dimension::AiTool => names(&evaluation.ai_tools, Some("none")),
        Dimension::Agent if ticket.agents.is_empty() => vec![Some("none".to_owned())],
        Dimension::Agent => ticket.agents.iter().map(|agent| Some(agent.id.to_string())).collect(),
        Dimension::Involvement => name(evaluation.ai_involvement),
        Dimension::Language => vec![evaluation.language.clone()],
        Dimension::Source => vec![Some(ticket.source.clone())],
        Dimension::Resolution => name(evaluation.resolution),
        Dimension::ResolvedBy => name(evaluation.resolved_by),
        Dimension::Basis => name(evaluation.basis),
        Dimension::Charge => name(evaluation.charge),
        Dimension::ChargeReason => names(&evaluation.charge_reasons, None),
        Dimension::Handoff => name(evaluation.handoff),
        Dimension::Band => name(evaluation.scores.map(|scores| scores.band)),
        Dimension::Flag => names(&evaluation.flags, None),
        Dimension::Scorer => name(evaluation.scorer),
        Dimension::Status => name(Some(evaluation.status)),
    }
}
