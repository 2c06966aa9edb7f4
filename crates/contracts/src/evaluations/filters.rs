//! The filters of evaluations: what each means, and how they are read from query parameters.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::or_none::{AiToolOrNone, OrNone};
use super::query::QueryReader;
use super::render::{Pairs, encode_query, push_moment, push_names, push_texts};
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

/// Declares the filters in the order of documentation: the type of each, how it is read from a query, and how it is written.
macro_rules! filters {
    ($($(#[$meta:meta])+ $name:ident: $type:ty, $read:ident, $push:ident;)+) => {
        /// The names of all filters.
        pub const FILTER_NAMES: [&str; 34] = [$(stringify!($name),)+];

        /// Filters that select evaluations. Several values of one field mean "or", different fields "and"; an empty field does
        /// not filter. A field that is not a filter is refused everywhere: ignored, it would select more than was asked for.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub struct EvaluationFilters {
            $(
                $(#[$meta])+
                #[serde(default, skip_serializing_if = "is_unset")]
                #[schema(nullable = false)]
                pub $name: $type,
            )+
        }

        impl EvaluationFilters {
            /// Takes the filters from a query reader, without the rules about filters that contradict each other.
            fn take(query: &mut QueryReader) -> Self {
                Self { $($name: query.$read(stringify!($name)),)+ }
            }

            /// The parameters that parse to these filters.
            pub fn to_pairs(&self) -> Pairs {
                let mut pairs = Pairs::new();
                $($push(&mut pairs, stringify!($name), &self.$name);)+
                pairs
            }
        }
    };
}

fn is_unset<T: Default + PartialEq>(filter: &T) -> bool {
    *filter == T::default()
}

filters! {
    /// Start of the range of conversation dates (timestamps of first messages), epoch milliseconds, inclusive.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 253_402_300_799_999_i64)]
    from: Option<Timestamp>, moment, push_moment;
    /// End of the range of conversation dates, epoch milliseconds, exclusive.
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 253_402_300_799_999_i64)]
    to: Option<Timestamp>, moment, push_moment;
    /// The ticket's id in the source system, exactly.
    external_id: Vec<String>, texts, push_texts;
    /// Words of the subject, in any order; all of them must occur as words of the subject, ignoring case.
    subject: Vec<String>, texts_with_words, push_texts;
    /// Words of the subject as in `subject`, or the ticket's id in the source system.
    search: Option<String>, one_text_with_words, push_texts;
    /// Source of the import, exactly.
    source: Vec<String>, texts, push_texts;
    /// Label of an AI tool that took part, or `none` for conversations without a label.
    #[schema(value_type = Vec<AiToolOrNone>, inline)]
    ai_tool: Vec<OrNone<AiTool>>, parsed_list, push_texts;
    /// Service id of a registered AI agent that took part, or `none` for conversations without one.
    #[schema(value_type = Vec<String>)]
    agent: Vec<OrNone<AgentId>>, parsed_list, push_texts;
    /// Who answered the customer.
    involvement: Vec<AiInvolvement>, named, push_names;
    /// Whether the issue was solved.
    resolution: Vec<ResolutionStatus>, named, push_names;
    /// Who solved it.
    resolved_by: Vec<ResolvedBy>, named, push_names;
    /// Basis of the resolution verdict.
    basis: Vec<ResolutionBasis>, named, push_names;
    /// Whether a vendor's charge is supported.
    charge: Vec<ChargeAssessment>, named, push_names;
    /// A reason of the charge's assessment.
    charge_reason: Vec<ChargeReason>, named, push_names;
    /// Outcome of the handoff.
    handoff: Vec<HandoffState>, named, push_names;
    /// The band of the conversation, as in `axis.band`.
    band: Vec<AxisBand>, named, push_names;
    /// Band of the AXIS score alone; `band` is that of the conversation.
    axis_band: Vec<AxisBand>, named, push_names;
    /// Lowest score for AXIS, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    axis_min: Option<Score>, score, push_texts;
    /// Highest score for AXIS, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    axis_max: Option<Score>, score, push_texts;
    /// Band of the score for resolution accuracy.
    resolution_accuracy_band: Vec<AxisBand>, named, push_names;
    /// Lowest score for resolution accuracy, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    resolution_accuracy_min: Option<Score>, score, push_texts;
    /// Highest score for resolution accuracy, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    resolution_accuracy_max: Option<Score>, score, push_texts;
    /// Band of the score for interaction effort.
    interaction_effort_band: Vec<AxisBand>, named, push_names;
    /// Lowest score for interaction effort, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    interaction_effort_min: Option<Score>, score, push_texts;
    /// Highest score for interaction effort, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    interaction_effort_max: Option<Score>, score, push_texts;
    /// Band of the score for handoff smoothness.
    handoff_smoothness_band: Vec<AxisBand>, named, push_names;
    /// Lowest score for handoff smoothness, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    handoff_smoothness_min: Option<Score>, score, push_texts;
    /// Highest score for handoff smoothness, 1.0–5.0.
    #[schema(value_type = Option<f64>, minimum = 1.0, maximum = 5.0)]
    handoff_smoothness_max: Option<Score>, score, push_texts;
    /// Minimum, 0–1, of the lowest confidence of the three dimensions.
    #[schema(value_type = Option<f64>, minimum = 0.0, maximum = 1.0)]
    confidence_min: Option<Confidence>, confidence, push_texts;
    /// Maximum, 0–1, of the lowest confidence of the three dimensions.
    #[schema(value_type = Option<f64>, minimum = 0.0, maximum = 1.0)]
    confidence_max: Option<Confidence>, confidence, push_texts;
    /// Language of the customer's text, ISO 639-1 or `und`.
    language: Vec<String>, languages, push_texts;
    /// A flag of the evaluation.
    flag: Vec<Flag>, named, push_names;
    /// Kind of scorer.
    scorer: Vec<ScorerKind>, named, push_names;
    /// Status of the evaluation.
    status: Vec<ResultStatus>, named, push_names;
}

impl EvaluationFilters {
    /// Reads a query that has only filters: any other parameter is an error.
    ///
    /// # Errors
    /// Every error, by the name of its parameter.
    pub fn parse<N: Into<String>, V: Into<String>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, Vec<FieldError>> {
        let mut query = QueryReader::new(pairs);
        let filters = Self::read(&mut query);
        query.finish(filters)
    }

    /// Takes the filters from a query reader, which collects their errors.
    pub fn read(query: &mut QueryReader) -> Self {
        let filters = Self::take(query);
        filters.check(query);
        filters
    }

    /// The canonical query, percent-encoded, without `?`; empty without filters.
    pub fn to_query(&self) -> String {
        encode_query(self.to_pairs())
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
        let no_score = "contradicts `involvement=no_ai`: without an AI agent there is no score";
        self.refuse_scores(query, no_score);
        // Without an AI agent the status is `not_applicable`; `status=failed` alone is refused by `check_status`.
        if self.status.contains(&ResultStatus::Scored) && !self.status.contains(&ResultStatus::NotApplicable)
        {
            query.add_error("status", no_score);
        }
        if !self.charge.is_empty() && !self.charge.contains(&ChargeAssessment::NotApplicable) {
            let no_charge = "contradicts `involvement=no_ai`: without an AI agent there is no charge";
            query.add_error("charge", no_charge);
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
        let no_score = "contradicts `status`: only evaluations with the status `scored` have a score";
        self.refuse_scores(query, no_score);
        if self.status == [ResultStatus::Failed] {
            self.refuse_results(query);
        }
    }

    /// Adds one error for each score with a filter, one for the confidence and one for the band.
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
