//! The filters of evaluations: what each means, and how they are read from query parameters.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::or_none::{AiToolOrNone, OrNone};
use super::query::QueryReader;
use crate::conversation::AiTool;
use crate::evaluation::{
    AiInvolvement, AxisBand, ChargeAssessment, ChargeReason, Confidence, Flag, HandoffState, ResolutionBasis,
    ResolutionStatus, ResolvedBy, Score, ScorerKind,
};
use crate::ids::AgentId;
use crate::named_enum::named_enum;
use crate::time::Timestamp;
use crate::validation::FieldError;

named_enum!(
    /// The result of an evaluation.
    ResultStatus {
        /// Evaluated, with AXIS.
        Scored = "scored",
        /// Evaluated, without AXIS: no AI message or no customer message.
        NotApplicable = "not_applicable",
        /// It could not be evaluated.
        Failed = "failed",
    }
);

/// The filters of one score: in one of the bands, and between `min` and `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreFilter<'f> {
    /// Bands; none is no filter.
    pub bands: &'f [AxisBand],
    /// Lowest score.
    pub min: Option<Score>,
    /// Highest score.
    pub max: Option<Score>,
}

impl ScoreFilter<'_> {
    /// Whether a score satisfies the filter.
    pub fn matches(&self, score: Score) -> bool {
        (self.bands.is_empty() || self.bands.contains(&AxisBand::of_score(score)))
            && self.min.is_none_or(|min| score >= min)
            && self.max.is_none_or(|max| score <= max)
    }
}

/// Filters that select evaluations. Several values of one field mean "or", different fields "and"; an empty field does
/// not filter. A field that is not a filter is refused everywhere: ignored, it would select more than was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EvaluationFilters {
    /// Start of the range of conversation dates (timestamps of first messages), epoch milliseconds, inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, minimum = 0, maximum = 253_402_300_799_999_i64)]
    pub from: Option<Timestamp>,
    /// End of the range of conversation dates, epoch milliseconds, exclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, minimum = 0, maximum = 253_402_300_799_999_i64)]
    pub to: Option<Timestamp>,
    /// The ticket's id in the source system, exactly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub external_id: Vec<String>,
    /// Words of the subject, in any order; all of them must occur as words of the subject, ignoring case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub subject: Vec<String>,
    /// Words of the subject as in `subject`, or the ticket's id in the source system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub search: Option<String>,
    /// Source of the import, exactly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub source: Vec<String>,
    /// Label of an AI tool that took part, or `none` for conversations without a label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<AiToolOrNone>, inline, nullable = false)]
    pub ai_tool: Vec<OrNone<AiTool>>,
    /// Service id of a registered AI agent that took part, or `none` for conversations without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, nullable = false)]
    pub agent: Vec<OrNone<AgentId>>,
    /// Who answered the customer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub involvement: Vec<AiInvolvement>,
    /// Whether the issue was solved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub resolution: Vec<ResolutionStatus>,
    /// Who solved it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub resolved_by: Vec<ResolvedBy>,
    /// Basis of the resolution verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub basis: Vec<ResolutionBasis>,
    /// Whether a vendor's charge is supported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub charge: Vec<ChargeAssessment>,
    /// A reason of the charge's assessment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub charge_reason: Vec<ChargeReason>,
    /// Outcome of the handoff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub handoff: Vec<HandoffState>,
    /// The band of the conversation, as in `axis.band`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub band: Vec<AxisBand>,
    /// Band of the AXIS score alone; `band` is that of the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub axis_band: Vec<AxisBand>,
    /// Lowest score for AXIS, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub axis_min: Option<Score>,
    /// Highest score for AXIS, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub axis_max: Option<Score>,
    /// Band of the score for resolution accuracy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub resolution_accuracy_band: Vec<AxisBand>,
    /// Lowest score for resolution accuracy, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub resolution_accuracy_min: Option<Score>,
    /// Highest score for resolution accuracy, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub resolution_accuracy_max: Option<Score>,
    /// Band of the score for interaction effort.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub interaction_effort_band: Vec<AxisBand>,
    /// Lowest score for interaction effort, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub interaction_effort_min: Option<Score>,
    /// Highest score for interaction effort, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub interaction_effort_max: Option<Score>,
    /// Band of the score for handoff smoothness.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub handoff_smoothness_band: Vec<AxisBand>,
    /// Lowest score for handoff smoothness, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub handoff_smoothness_min: Option<Score>,
    /// Highest score for handoff smoothness, 1.0–5.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 1.0, maximum = 5.0)]
    pub handoff_smoothness_max: Option<Score>,
    /// Minimum, 0–1, of the lowest confidence of the three dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 0.0, maximum = 1.0)]
    pub confidence_min: Option<Confidence>,
    /// Maximum, 0–1, of the lowest confidence of the three dimensions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, nullable = false, minimum = 0.0, maximum = 1.0)]
    pub confidence_max: Option<Confidence>,
    /// Language of the customer's text, ISO 639-1 or `und`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub language: Vec<String>,
    /// A flag of the evaluation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub flag: Vec<Flag>,
    /// Kind of scorer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub scorer: Vec<ScorerKind>,
    /// Status of the evaluation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(nullable = false)]
    pub status: Vec<ResultStatus>,
}

impl EvaluationFilters {
    /// Reads a query that has only filters: any other parameter is an error.
    ///
    /// # Errors
    /// Every fault, by the name of its parameter.
    pub fn parse<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut query = QueryReader::new(pairs);
        let filters = Self::read(&mut query);
        query.finish(filters)
    }

    /// Takes the filters from a query reader, which collects their faults.
    pub fn read(query: &mut QueryReader) -> Self {
        let filters = Self::take(query);
        filters.check(query);
        filters
    }

    /// The filters of the four scores, each with the prefix of its parameters' names.
    pub fn scores(&self) -> [(&'static str, ScoreFilter<'_>); 4] {
        [
            ("axis", ScoreFilter { bands: &self.axis_band, min: self.axis_min, max: self.axis_max }),
            (
                "resolution_accuracy",
                ScoreFilter {
                    bands: &self.resolution_accuracy_band,
                    min: self.resolution_accuracy_min,
                    max: self.resolution_accuracy_max,
                },
            ),
            (
                "interaction_effort",
                ScoreFilter {
                    bands: &self.interaction_effort_band,
                    min: self.interaction_effort_min,
                    max: self.interaction_effort_max,
                },
            ),
            (
                "handoff_smoothness",
                ScoreFilter {
                    bands: &self.handoff_smoothness_band,
                    min: self.handoff_smoothness_min,
                    max: self.handoff_smoothness_max,
                },
            ),
        ]
    }

    /// Whether no filter other than the date of the conversation is set.
    pub fn is_period_only(&self) -> bool {
        Self { from: None, to: None, ..self.clone() } == Self::default()
    }

    /// Reports filters that no evaluation can satisfy together.
    fn check(&self, query: &mut QueryReader) {
        if matches!((self.from, self.to), (Some(from), Some(to)) if from > to) {
            query.add_error("from", "must not be later than `to`");
        }
        for (name, score) in self.scores() {
            let ScoreFilter { bands, min, max } = score;
            if min.zip(max).is_some_and(|(min, max)| min > max) {
                query.add_error(&format!("{name}_min"), format!("must not be above `{name}_max`"));
            } else if !bands.is_empty() && !Score::all().any(|possible| score.matches(possible)) {
                let detail = format!(
                    "contradicts `{name}_min` or `{name}_max`: no score in these bands is in the range"
                );
                query.add_error(&format!("{name}_band"), detail);
            }
        }
        if self.confidence_min.zip(self.confidence_max).is_some_and(|(min, max)| min > max) {
            query.add_error("confidence_min", "must not be above `confidence_max`");
        }
        self.check_status(query);
        self.check_without_ai(query);
    }

    /// Reports filters that contradict `involvement=no_ai`.
    fn check_without_ai(&self, query: &mut QueryReader) {
        if self.involvement != [AiInvolvement::NoAi] {
            return;
        }
        self.refuse_scores(query, "contradicts `involvement=no_ai`: without an AI agent there is no score");
        // A failed evaluation has no involvement; `status=failed` alone is refused by `check_status`.
        if self.status.contains(&ResultStatus::Scored) && !self.status.contains(&ResultStatus::NotApplicable)
        {
            query.add_error(
                "status",
                "contradicts `involvement=no_ai`: without an AI agent there is no score",
            );
        }
        if !self.charge.is_empty() && !self.charge.contains(&ChargeAssessment::NotApplicable) {
            query.add_error(
                "charge",
                "contradicts `involvement=no_ai`: without an AI agent there is no charge",
            );
        }
        if !self.ai_tool.is_empty() && !self.ai_tool.contains(&OrNone::None) {
            query.add_error("ai_tool", "contradicts `involvement=no_ai`: no AI tool took part");
        }
        if !self.agent.is_empty() && !self.agent.contains(&OrNone::None) {
            query.add_error("agent", "contradicts `involvement=no_ai`: no AI agent took part");
        }
    }

    fn check_status(&self, query: &mut QueryReader) {
        if self.status.is_empty() || self.status.contains(&ResultStatus::Scored) {
            return;
        }
        self.refuse_scores(
            query,
            "contradicts `status`: only evaluations with the status `scored` have a score",
        );
        if self.status == [ResultStatus::Failed] {
            self.refuse_results(query);
        }
    }

    /// Adds an error for each filter by a score, its band or its confidence.
    fn refuse_scores(&self, query: &mut QueryReader, detail: &str) {
        for (name, score) in self.scores() {
            let given = [
                ("band", !score.bands.is_empty()),
                ("min", score.min.is_some()),
                ("max", score.max.is_some()),
            ];
            if let Some((part, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                query.add_error(&format!("{name}_{part}"), detail);
            }
        }
        if self.confidence_min.or(self.confidence_max).is_some() {
            let name = if self.confidence_min.is_some() { "confidence_min" } else { "confidence_max" };
            query.add_error(name, detail);
        }
        if !self.band.is_empty() {
            query.add_error("band", detail);
        }
    }

    /// Adds an error for each filter by a result other than scores.
    fn refuse_results(&self, query: &mut QueryReader) {
        // `agent` is not one of them: the agents are known from the ticket.
        let lists = [
            ("involvement", self.involvement.is_empty()),
            ("ai_tool", self.ai_tool.is_empty()),
            ("resolution", self.resolution.is_empty()),
            ("resolved_by", self.resolved_by.is_empty()),
            ("basis", self.basis.is_empty()),
            ("charge", self.charge.is_empty()),
            ("charge_reason", self.charge_reason.is_empty()),
            ("handoff", self.handoff.is_empty()),
            ("language", self.language.is_empty()),
            ("flag", self.flag.is_empty()),
            ("scorer", self.scorer.is_empty()),
        ];
        for (name, _) in lists.into_iter().filter(|(_, is_empty)| !is_empty) {
            query.add_error(name, "contradicts `status=failed`: a failed evaluation has no result");
        }
    }
}
