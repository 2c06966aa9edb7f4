//! Summaries: counts, means and distributions of the evaluations that a filter selects.

use chrono::{DateTime, Months};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filters::EvaluationFilters;
use super::query::QueryReader;
use super::render::Pairs;
use crate::evaluation::{ChargeReason, Score, named_enum};
use crate::time::Timestamp;
use crate::validation::FieldError;

/// Milliseconds of a day. Days are those of UTC.
pub const DAY_MILLIS: i64 = 86_400_000;

/// Maximum number of parts of a series.
pub const MAX_POINTS: i64 = 800;

/// Most dimensions of one breakdown.
pub const MAX_DIMENSIONS: usize = 2;

named_enum!(
    /// What a summary is broken down by.
    BreakdownDimension, "snake_case" {
        /// AI tool; a conversation counts for each of its tools.
        AiTool = "ai_tool",
        /// Registered AI agent; a conversation counts for each of its agents.
        Agent = "agent",
        /// Who answered the customer.
        Involvement = "involvement",
        /// Language.
        Language = "language",
        /// Source of the import.
        Source = "source",
        /// Whether the issue was solved.
        Resolution = "resolution",
        /// Who solved it.
        ResolvedBy = "resolved_by",
        /// Basis of the resolution verdict.
        Basis = "basis",
        /// Whether a vendor's charge is supported.
        Charge = "charge",
        /// Reason of the charge's assessment; a conversation counts for each of its reasons.
        ChargeReason = "charge_reason",
        /// Outcome of the handoff.
        Handoff = "handoff",
        /// Band of the conversation.
        Band = "band",
        /// Flag; a conversation counts for each of its flags.
        Flag = "flag",
        /// Kind of scorer.
        Scorer = "scorer",
        /// Status of the evaluation.
        Status = "status",
    }
);

named_enum!(
    /// Length of the parts of a series.
    Step, "snake_case" {
        /// A day of UTC.
        Day = "day",
        /// Seven days of UTC, from the first day of the period.
        Week = "week",
        /// Thirteen weeks, from the first day of the period.
        Quarter = "quarter",
    }
);

impl Step {
    /// Length of a part, in days.
    pub fn days(self) -> i64 {
        match self {
            Self::Day => 1,
            Self::Week => 7,
            Self::Quarter => 91,
        }
    }
}

named_enum!(
    /// The period to compare with.
    Comparison, "snake_case" {
        /// The period of the same length immediately before.
        Previous = "previous",
        /// The same dates a year earlier.
        Year = "year",
    }
);

/// The query of `GET /v1/evaluations/summary`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SummaryQuery {
    /// Filters of the evaluations.
    pub filters: EvaluationFilters,
    /// Dimensions of the breakdown, the outer one first; at most [`MAX_DIMENSIONS`].
    pub by: Vec<BreakdownDimension>,
    /// Length of the parts of the series; without it there is no series.
    pub step: Option<Step>,
    /// The period to compare with.
    pub compare: Option<Comparison>,
}

impl SummaryQuery {
    /// Reads a query.
    ///
    /// # Errors
    /// Every fault, by the name of its parameter.
    pub fn parse<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Vec<FieldError>> {
        // The order of `by` matters, but `QueryReader` sorts the values of a list.
        let (by, others): (Vec<_>, Vec<_>) = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .partition(|(name, _)| name == "by");
        let mut query = QueryReader::new(others);
        let filters = EvaluationFilters::read(&mut query);
        let by = read_dimensions(&mut query, by);
        let step = query.one_named("step");
        let compare = query.one_named("compare");
        if compare.is_some() && filters.from.zip(filters.to).is_none() {
            query.add_error("compare", "needs `from` and `to`");
        }
        let length = filters.from.zip(filters.to).map(|(from, to)| to.millis_since(from));
        if step == Some(Step::Day) && length.is_some_and(|length| length > MAX_POINTS * DAY_MILLIS) {
            query.add_error(
                "step",
                format!("`day` allows at most {MAX_POINTS} days between `from` and `to`: use `week`"),
            );
        }
        query.finish(Self { filters, by, step, compare })
    }

    /// The parameters that parse to this query.
    pub fn to_pairs(&self) -> Pairs {
        let mut pairs = self.filters.to_pairs();
        pairs.extend(self.by.iter().map(|dimension| ("by", dimension.as_str().to_owned())));
        pairs.extend(self.step.map(|step| ("step", step.as_str().to_owned())));
        pairs.extend(self.compare.map(|compare| ("compare", compare.as_str().to_owned())));
        pairs
    }

    /// The same filters for the period to compare with; `None` without `compare`, `from` or `to`.
    pub fn compared_filters(&self) -> Option<EvaluationFilters> {
        let (from, to) = self.filters.from.zip(self.filters.to)?;
        let (from, to) = match self.compare? {
            Comparison::Previous => (from.plus_millis(-to.millis_since(from)), from),
            Comparison::Year => {
                let from = a_year_before(from)?;
                // 28 and 29 February both become 28 February, so the end could come before the start.
                (from, end_a_year_before(to)?.max(from))
            }
        };
        Some(EvaluationFilters { from: Some(from), to: Some(to), ..self.filters.clone() })
    }
}

fn read_dimensions(query: &mut QueryReader, by: Vec<(String, String)>) -> Vec<BreakdownDimension> {
    use crate::evaluation::Named;
    let mut dimensions = Vec::new();
    for (_, name) in by {
        match <BreakdownDimension as Named>::from_name(&name) {
            Some(dimension) if dimensions.contains(&dimension) => {
                query.add_error("by", format!("names `{name}` twice"));
            }
            Some(dimension) => dimensions.push(dimension),
            None => {
                let names: Vec<&str> =
                    BreakdownDimension::ALL.iter().map(|dimension| dimension.as_str()).collect();
                query.add_error("by", format!("must be one of: {}", names.join(", ")));
            }
        }
    }
    if dimensions.len() > MAX_DIMENSIONS {
        query.add_error("by", format!("must not be given more than {MAX_DIMENSIONS} times"));
    }
    dimensions
}

fn a_year_before(moment: Timestamp) -> Option<Timestamp> {
    let earlier = DateTime::from_timestamp_millis(moment.as_millis())?.checked_sub_months(Months::new(12))?;
    Some(Timestamp::saturating_from_millis(earlier.timestamp_millis()))
}

/// The exclusive end of a period, a year earlier: computed from the last moment of the period, because an end on
/// 29 February would become 28 February and lose a day.
fn end_a_year_before(end: Timestamp) -> Option<Timestamp> {
    Some(a_year_before(end.plus_millis(-1))?.plus_millis(1))
}

/// Counts, means and distributions of the evaluations that a filter selects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Summary {
    /// The period of the filter; without `from` or `to` it begins or ends with the first or last day with evaluations.
    pub period: Period,
    /// All selected evaluations.
    pub totals: Measures,
    /// Scored conversations by their scores, in steps of half a point from the lowest.
    pub distributions: Distributions,
    /// Reasons of the charge's assessment, most frequent first; a conversation can have several.
    pub charge_reasons: Vec<ReasonCount>,
    /// The parts of the period in order, at most 800; only with `step`. Without `from` or `to` a part has as many weeks as
    /// this limit requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub series: Option<Vec<SeriesPoint>>,
    /// The breakdown; only with `by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub breakdown: Option<Breakdown>,
    /// The summary of the period to compare with; only with `compare`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub compared: Option<PeriodSummary>,
    /// Imports by status; only without filters other than the date, and absent while pending imports cannot be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub coverage: Option<Coverage>,
}

/// A half-open range of conversation dates, epoch milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Period {
    /// Start, inclusive.
    #[schema(value_type = i64)]
    pub from: Timestamp,
    /// End, exclusive.
    #[schema(value_type = i64)]
    pub to: Timestamp,
}

/// Counts and means of a set of evaluations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Measures {
    /// Evaluations: `scored`, `not_applicable` and `failed` together.
    pub count: u64,
    /// Evaluations with AXIS.
    pub scored: u64,
    /// Evaluations without AXIS: no AI message or no customer message.
    pub not_applicable: u64,
    /// Failed evaluations.
    pub failed: u64,
    /// Means of the scored evaluations, rounded to hundredths; absent when there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub means: Option<Means>,
    /// Scored evaluations by band.
    pub bands: BandCounts,
    /// Evaluations by assessment of the charge; failed ones have none and are not counted.
    pub charges: ChargeCounts,
}

/// Means, rounded to hundredths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Means {
    /// Of AXIS.
    pub axis: f64,
    /// Of resolution accuracy.
    pub resolution_accuracy: f64,
    /// Of interaction effort.
    pub interaction_effort: f64,
    /// Of handoff smoothness.
    pub handoff_smoothness: f64,
    /// Of the confidence.
    pub confidence: f64,
}

/// Numbers by band.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BandCounts {
    /// `band=excellent`.
    pub excellent: u64,
    /// `band=good`.
    pub good: u64,
    /// `band=mixed`.
    pub mixed: u64,
    /// `band=poor`.
    pub poor: u64,
}

/// Numbers by assessment of the charge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChargeCounts {
    /// `charge=supported`.
    pub supported: u64,
    /// `charge=review`.
    pub review: u64,
    /// `charge=disputed`.
    pub disputed: u64,
    /// `charge=not_applicable`.
    pub not_applicable: u64,
}

/// Distributions of the four scores, each of eight steps from the lowest.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Distributions {
    /// Of AXIS.
    pub axis: Vec<DistributionStep>,
    /// Of resolution accuracy.
    pub resolution_accuracy: Vec<DistributionStep>,
    /// Of interaction effort.
    pub interaction_effort: Vec<DistributionStep>,
    /// Of handoff smoothness.
    pub handoff_smoothness: Vec<DistributionStep>,
}

/// Number of evaluations with a score from `min` to `max`, both inclusive: 1.0 to 1.4, 1.5 to 1.9, …, 4.5 to 5.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DistributionStep {
    /// Lowest score.
    #[schema(value_type = f64)]
    pub min: Score,
    /// Highest score.
    #[schema(value_type = f64)]
    pub max: Score,
    /// Evaluations.
    pub count: u64,
}

/// How often a reason of the charge's assessment occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReasonCount {
    /// The reason.
    pub reason: ChargeReason,
    /// Evaluations with the reason.
    pub count: u64,
    /// These evaluations by assessment of the charge.
    pub charges: ChargeCounts,
}

/// A part of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesPoint {
    /// Dates of the part, within the summarized period.
    #[serde(flatten)]
    pub period: Period,
    /// The evaluations of these dates.
    #[serde(flatten)]
    pub measures: Measures,
}

/// Summary of the period to compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PeriodSummary {
    /// The period.
    pub period: Period,
    /// All selected evaluations of the period.
    pub totals: Measures,
    /// The parts of the period in order; only with `step`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub series: Option<Vec<SeriesPoint>>,
}

/// Evaluations by the values of one or two dimensions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Breakdown {
    /// The dimensions, the outer one first.
    pub by: Vec<BreakdownDimension>,
    /// Groups with most evaluations first.
    pub groups: Vec<Group>,
    /// Whether groups are missing: only the largest are listed, or none when there are too many values to count.
    pub truncated: bool,
}

/// The evaluations with one value of a dimension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Value for the filter with the name of the dimension: it selects these evaluations. Absent for evaluations without a
    /// value, if no filter selects them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub value: Option<String>,
    /// The latest display name of an agent; absent for other dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub label: Option<String>,
    /// The evaluations.
    #[serde(flatten)]
    pub measures: Measures,
    /// The groups by the inner dimension.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub groups: Vec<Group>,
}

/// Imports whose conversations began in the period, by status of their evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Coverage {
    /// All imports: the sum of the other fields.
    pub imported: u64,
    /// Scored.
    pub scored: u64,
    /// Evaluated without AXIS.
    pub not_applicable: u64,
    /// The evaluation failed for good.
    pub failed: u64,
    /// Not evaluated yet; counted among the newest 10,000 imports of the last seven days.
    pub pending: u64,
}

impl Coverage {
    /// Adds the pending imports, which export does not know.
    #[must_use]
    pub fn with_pending(self, pending: u64) -> Self {
        Self { pending: self.pending + pending, imported: self.imported + pending, ..self }
    }
}
