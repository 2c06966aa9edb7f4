//! Summaries: counts, means and distributions of the evaluations that a filter selects.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::summary_query::BreakdownDimension;
use crate::evaluation::{ChargeReason, Score};
use crate::time::Timestamp;

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
