//! What the URL of the overview selects: period, comparison, breakdown and distribution.

use assay_contracts::evaluations::{Comparison, Dimension, EvaluationFilters, Step, SummaryQuery};
use assay_platform::runtime::now;

use super::form::Faults;
use crate::domain::{COMPARISONS, PERIODS, Pairs, Period};

/// Name in the URL, label within a sentence, dimensions.
pub(crate) type BreakdownChoice = (&'static str, &'static str, &'static [Dimension]);

pub(crate) const BREAKDOWNS: [BreakdownChoice; 4] = [
    ("tool", "AI tool, agent", &[Dimension::AiTool, Dimension::Agent]),
    ("agent", "agent", &[Dimension::Agent]),
    ("involvement", "involvement", &[Dimension::Involvement]),
    ("language", "language", &[Dimension::Language]),
];

/// Name in the URL, label.
pub(crate) const DISTRIBUTIONS: [(&str, &str); 4] = [
    ("axis", "AXIS"),
    ("resolution_accuracy", "RA"),
    ("interaction_effort", "IE"),
    ("handoff_smoothness", "HS"),
];

/// The parameters of the URL.
const PARAMETERS: [&str; 6] = ["period", "from", "to", "beside", "by", "of"];

/// Those of the period.
pub(crate) const PERIOD_PARAMETERS: [&str; 3] = ["period", "from", "to"];

/// Maximum number of days of a trend by days.
const MAX_DAYS_BY_DAY: i64 = 31;
/// Maximum number of days of a trend by weeks; with more weeks the page would weigh more than 30 kB.
const MAX_DAYS_BY_WEEK: i64 = 5 * 91;

/// What the URL selects.
pub(crate) struct Selection {
    pub(crate) period: Period,
    /// Whether the URL names no period.
    pub(crate) is_default_period: bool,
    /// Name in the URL, and the comparison.
    pub(crate) comparison: (&'static str, Option<Comparison>),
    pub(crate) breakdown: &'static BreakdownChoice,
    pub(crate) distribution: &'static (&'static str, &'static str),
    /// The parts of the trends.
    pub(crate) step: Step,
}

impl Selection {
    /// Reads the pairs of a query, and its faults by parameter. What is at fault has its default.
    pub(crate) fn read(query: &[(String, String)]) -> (Self, Faults) {
        let get = |name: &str| query.iter().find(|pair| pair.0 == name).map_or("", |pair| pair.1.trim());
        let mut faults = Faults::of_parameters(query, &PARAMETERS);
        let period = read_period(get("period"), get("from"), get("to"), &mut faults);
        let is_default_period = [get("period"), get("from"), get("to")] == ["", "", ""];
        let default_period = || Period::named("28d", now()).unwrap_or_else(Period::all);
        let period = period.unwrap_or_else(default_period);
        let beside = choose(&COMPARISONS, |(name, ..)| name, "beside", get("beside"), &mut faults);
        let selection = Self {
            step: step_of(period.length_in_days()),
            period,
            is_default_period,
            comparison: (beside.0, beside.2),
            breakdown: choose(&BREAKDOWNS, |(name, ..)| name, "by", get("by"), &mut faults),
            distribution: choose(&DISTRIBUTIONS, |(name, _)| name, "of", get("of"), &mut faults),
        };
        (selection, faults)
    }

    /// Selects everything in place of the period.
    pub(crate) fn select_all(&mut self) {
        self.period = Period::all();
        self.step = step_of(None);
    }

    /// The filter of the period.
    pub(crate) fn filters(&self) -> EvaluationFilters {
        let (from, to) = (self.period.days.map(|days| days.0), self.period.days.map(|days| days.1));
        EvaluationFilters { from, to, ..EvaluationFilters::default() }
    }

    /// The query of the summary.
    pub(crate) fn query(&self) -> SummaryQuery {
        SummaryQuery {
            filters: self.filters(),
            by: self.breakdown.2.to_vec(),
            step: Some(self.step),
            compare: self.period.days.and(self.comparison.1),
        }
    }

    /// The pairs that the form of the period keeps.
    pub(crate) fn kept_by_the_form(&self) -> Pairs {
        let pairs =
            [("by", self.breakdown.0, BREAKDOWNS[0].0), ("of", self.distribution.0, DISTRIBUTIONS[0].0)];
        let chosen = pairs.into_iter().filter(|(_, value, default)| value != default);
        chosen.map(|(name, value, _)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// The pairs of a query that links keep: those that are not refused. A period is refused as a whole, because a part of it selects
/// another one.
pub(crate) fn accepted(query: &[(String, String)], faults: &Faults) -> Pairs {
    let is_refused = |name: &str| faults.of(name).is_some();
    let is_period_refused = PERIOD_PARAMETERS.iter().any(|name| is_refused(name));
    let is_accepted = |name: &str| {
        PARAMETERS.contains(&name)
            && !is_refused(name)
            && !(is_period_refused && PERIOD_PARAMETERS.contains(&name))
    };
    query.iter().filter(|(name, _)| is_accepted(name)).cloned().collect()
}

/// The label of a parameter as the page has it beside its field or links.
pub(crate) fn parameter_label(name: &str) -> &str {
    match name {
        "period" => "Period",
        "from" => "From",
        "to" => "To",
        "beside" => "Beside",
        "by" => "Break down by",
        "of" => "Distribution of",
        // Not a parameter of the page.
        other => other,
    }
}

fn read_period(name: &str, from: &str, to: &str, faults: &mut Faults) -> Option<Period> {
    match (name, from, to) {
        ("", "", "") => None,
        ("", from, to) => Period::of_days(from, to).map_err(|(field, text)| faults.add(field, text)).ok(),
        (name, "", "") => {
            let period = Period::named(name, now());
            if period.is_none() {
                let names = PERIODS.map(|(name, ..)| name).join(", ");
                faults.add("period", format!("is none of {names}, all"));
            }
            period
        }
        _ => {
            faults.add("period", "contradicts From and To: give a name or days");
            None
        }
    }
}

/// The choice with the name `given`, by default the first.
fn choose<T>(
    choices: &'static [T],
    name_of: impl Fn(&'static T) -> &'static str,
    parameter: &str,
    given: &str,
    faults: &mut Faults,
) -> &'static T {
    match choices.iter().find(|choice| name_of(choice) == given) {
        Some(choice) => choice,
        None => {
            if !given.is_empty() {
                let names = choices.iter().map(name_of).collect::<Vec<_>>().join(", ");
                faults.add(parameter, format!("is none of {names}"));
            }
            &choices[0]
        }
    }
}

/// The parts of the trends of a period with this length in days; those of everything fit any length.
pub(crate) fn step_of(days: Option<i64>) -> Step {
    match days {
        Some(..=MAX_DAYS_BY_DAY) => Step::Day,
        Some(..=MAX_DAYS_BY_WEEK) => Step::Week,
        _ => Step::Quarter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::parse_pairs;

    fn read(query: &str) -> (Selection, Vec<String>) {
        let (selection, faults) = Selection::read(&parse_pairs(query));
        let names = faults.all().map(|(name, _)| name.to_owned()).collect();
        (selection, names)
    }

    #[test]
    fn every_fault_is_named() {
        assert_eq!(
            read("by=size&of=x&beside=never&charge=review&period=8d&by=tool").1,
            ["charge", "by", "period", "beside", "by", "of"]
        );
        assert_eq!(read("period=7d&from=2026-01-01").1, ["period"]);
        assert_eq!(read("from=2026-01-01").1, ["to"]);
        assert_eq!(read("from=2010-01-01&to=2026-11-01").1, ["from"]);
        assert_eq!(read("period=&from=&to=&beside=year&by=language&of=axis").1, [""; 0]);
    }

    #[test]
    fn links_keep_only_what_is_accepted() {
        for (query, expected) in [
            ("period=7d&by=language&of=x&beside=never&a/b=1", "period=7d&by=language"),
            ("from=2010-01-01&to=2026-11-01&by=agent", "by=agent"),
            ("period=7d&from=2026-01-01&of=axis", "of=axis"),
            ("by=agent&by=tool&beside=year", "beside=year"),
            ("from=2026-01-01&to=2026-01-31&nosuch=1", "from=2026-01-01&to=2026-01-31"),
        ] {
            let pairs = parse_pairs(query);
            let accepted = accepted(&pairs, &Selection::read(&pairs).1);
            let kept: Vec<String> =
                accepted.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(kept.join("&"), expected, "{query}");
        }
    }

    #[test]
    fn form_keeps_breakdown_and_distribution() {
        let kept = read("period=7d&by=language&of=interaction_effort&beside=year").0.kept_by_the_form();
        let kept: Vec<String> = kept.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(kept, ["by=language", "of=interaction_effort"]);
        assert!(read("period=7d&by=tool").0.kept_by_the_form().is_empty());
    }

    #[test]
    fn trend_of_a_long_period_has_weeks_or_quarters() {
        assert_eq!(read("period=28d").0.step, Step::Day);
        assert_eq!(read("period=quarter").0.step, Step::Week);
        assert_eq!(read("period=year").0.step, Step::Week);
        assert_eq!(read("from=2024-01-01&to=2025-12-31").0.step, Step::Quarter);
        assert_eq!(read("period=all").0.step, Step::Quarter);
    }
}
