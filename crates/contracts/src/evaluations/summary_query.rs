//! The query of a summary: filters, breakdown, parts of a series, the period to compare with.

use chrono::{DateTime, Months};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::filters::EvaluationFilters;
use super::query::QueryReader;
use super::render::Pairs;
use crate::named_enum::{Named, named_enum};
use crate::time::{DAY_MILLIS, Timestamp};
use crate::validation::FieldError;

/// Maximum number of parts of a series.
pub const MAX_POINTS: i64 = 800;

/// Most dimensions of one breakdown.
pub const MAX_DIMENSIONS: usize = 2;

named_enum!(
    /// What a summary is broken down by.
    BreakdownDimension {
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
    Step {
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
    Comparison {
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
    /// Every error, by the name of its parameter.
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
    let mut dimensions = Vec::new();
    for (_, name) in by {
        match BreakdownDimension::from_name(&name) {
            Some(dimension) if dimensions.contains(&dimension) => {
                query.add_error("by", format!("names `{name}` twice"));
            }
            Some(dimension) => dimensions.push(dimension),
            None => query.add_error("by", format!("must be one of: {}", BreakdownDimension::names())),
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
