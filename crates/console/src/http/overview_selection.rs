//! What the URL of the overview selects: period, comparison, breakdown and distribution.

use assay_contracts::evaluations::{Comparison, Dimension, EvaluationFilters, Step, SummaryQuery};
use assay_platform::runtime::now;

use super::form::Faults;
use crate::domain::{COMPARISONS, PERIODS, Pairs, Period, first_value};

pub(crate) struct BreakdownChoice {
    /// Name in the URL.
    pub(crate) name: &'static str,
    /// Label within a sentence.
    pub(crate) label: &'static str,
    dimensions: &'static [Dimension],
}

pub(crate) const BREAKDOWNS: [BreakdownChoice; 4] = [
    BreakdownChoice {
        name: "tool",
        label: "AI tool, agent",
        dimensions: &[Dimension::AiTool, Dimension::Agent],
    },
    BreakdownChoice { name: "agent", label: "agent", dimensions: &[Dimension::Agent] },
    BreakdownChoice { name: "involvement", label: "involvement", dimensions: &[Dimension::Involvement] },
    BreakdownChoice { name: "language", label: "language", dimensions: &[Dimension::Language] },
];

/// The score whose distribution is shown.
pub(crate) struct DistributionChoice {
    /// Name in the URL, and prefix of the filters of the score.
    pub(crate) score: &'static str,
    pub(crate) label: &'static str,
}

pub(crate) const DISTRIBUTIONS: [DistributionChoice; 4] = [
    DistributionChoice { score: "axis", label: "AXIS" },
    DistributionChoice { score: "resolution_accuracy", label: "RA" },
    DistributionChoice { score: "interaction_effort", label: "IE" },
    DistributionChoice { score: "handoff_smoothness", label: "HS" },
];

const PARAMETERS: [&str; 6] = ["period", "from", "to", "beside", "by", "of"];

/// Those of the period.
pub(crate) const PERIOD_PARAMETERS: [&str; 3] = ["period", "from", "to"];

/// Longest period, in days, whose trends have a point for each day.
const MAX_DAYS_BY_DAY: i64 = 31;
/// Longest period, in days, whose trends have a point for each week; with more weeks the page would weigh more than 30 kB.
const MAX_DAYS_BY_WEEK: i64 = 5 * 91;

pub(crate) struct Selection {
    pub(crate) period: Period,
    /// Whether the URL names no period.
    pub(crate) is_default_period: bool,
    /// Name of the comparison in the URL.
    pub(crate) comparison_name: &'static str,
    comparison: Option<Comparison>,
    pub(crate) breakdown: &'static BreakdownChoice,
    pub(crate) distribution: &'static DistributionChoice,
    /// The steps of the trends.
    pub(crate) step: Step,
}

impl Selection {
    /// Reads the pairs of a query, and its faults by parameter. What is at fault has its default.
    pub(crate) fn read(query: &[(String, String)]) -> (Self, Faults) {
        let get = |name: &str| first_value(query, name).map_or("", str::trim);
        let mut faults = Faults::of_parameters(query, &PARAMETERS);
        let period = read_period(get("period"), get("from"), get("to"), &mut faults);
        let is_default_period = [get("period"), get("from"), get("to")] == ["", "", ""];
        let default_period = || Period::named("28d", now()).unwrap_or_else(Period::all);
        let period = period.unwrap_or_else(default_period);
        let (comparison_name, _, comparison) =
            *choose(&COMPARISONS, |(name, ..)| name, "beside", get("beside"), &mut faults);
        let selection = Self {
            step: step_of(period.length_in_days()),
            period,
            is_default_period,
            comparison_name,
            comparison,
            breakdown: choose(&BREAKDOWNS, |choice| choice.name, "by", get("by"), &mut faults),
            distribution: choose(&DISTRIBUTIONS, |choice| choice.score, "of", get("of"), &mut faults),
        };
        (selection, faults)
    }

    /// Replaces the period by that of everything.
    pub(crate) fn select_all(&mut self) {
        self.period = Period::all();
        self.step = step_of(None);
    }

    pub(crate) fn filters(&self) -> EvaluationFilters {
        let (from, to) = (self.period.days.map(|days| days.0), self.period.days.map(|days| days.1));
        EvaluationFilters { from, to, ..EvaluationFilters::default() }
    }

    pub(crate) fn query(&self) -> SummaryQuery {
        SummaryQuery {
            filters: self.filters(),
            by: self.breakdown.dimensions.to_vec(),
            step: Some(self.step),
            compare: self.period.days.and(self.comparison),
        }
    }

    /// The hidden fields of the form of the period: breakdown and distribution, unless they are the default ones.
    pub(crate) fn hidden_fields(&self) -> Pairs {
        let pairs = [
            ("by", self.breakdown.name, BREAKDOWNS[0].name),
            ("of", self.distribution.score, DISTRIBUTIONS[0].score),
        ];
        let chosen = pairs.into_iter().filter(|(_, value, default)| value != default);
        chosen.map(|(name, value, _)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// The pairs of a query that links keep: those that are not refused. A period is refused as a whole, because a part of it selects
/// another one.
pub(crate) fn accepted_pairs(query: &[(String, String)], faults: &Faults) -> Pairs {
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

/// The choice with the name `given`; the first one if the parameter is empty, or, with a fault, unknown.
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

/// The steps of the trends of a period with this length in days; quarters if the length is not known.
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
            let accepted = accepted_pairs(&pairs, &Selection::read(&pairs).1);
            let kept: Vec<String> =
                accepted.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(kept.join("&"), expected, "{query}");
        }
    }

    #[test]
    fn form_keeps_breakdown_and_distribution() {
        let kept = read("period=7d&by=language&of=interaction_effort&beside=year").0.hidden_fields();
        let kept: Vec<String> = kept.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(kept, ["by=language", "of=interaction_effort"]);
        assert!(read("period=7d&by=tool").0.hidden_fields().is_empty());
    }

    #[test]
    fn longer_periods_have_longer_steps() {
        assert_eq!(read("period=28d").0.step, Step::Day);
        assert_eq!(read("period=quarter").0.step, Step::Week);
        assert_eq!(read("period=year").0.step, Step::Week);
        assert_eq!(read("from=2024-01-01&to=2025-12-31").0.step, Step::Quarter);
        assert_eq!(read("period=all").0.step, Step::Quarter);
    }
}
