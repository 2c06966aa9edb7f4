//! Random evaluations and random filters, and a simple implementation of filters to compare with.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on ends")]

use assay_contracts::agent::AgentFacts;
use assay_contracts::conversation::AiTool;
use assay_contracts::evaluation::{
    AiInvolvement, AiToolUse, AxisBand, Confidence, Evaluation, EvaluationStatus, Named, Score,
};
use assay_contracts::evaluations::{
    EvaluationFilters, EvaluationItem, ItemScores, OrNone, ResultStatus, words_of,
};
use assay_contracts::event::{ConversationEvaluated, EvaluationOutcome};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_testkit::Rng;
use uuid::Uuid;

use crate::samples::{STARTED, changed, evaluated};

const WORDS: [&str; 8] = ["Refund", "order", "größe", "late", "Login", "can't", "42", "日本"];
const SOURCES: [&str; 3] = ["zendesk", "custom", "it's \"quoted\""];
const LANGUAGES: [&str; 4] = ["en", "de", "und", "fr"];
/// Days of the conversations.
const DAYS: u64 = 9;

/// Generator of evaluations and filters.
pub struct Random(Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(usize::try_from(bound).unwrap()) as u64
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub fn choose<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.0.below(values.len())].clone()
    }

    fn subset<T: Clone>(&mut self, values: &[T]) -> Vec<T> {
        values.iter().filter(|_| self.one_in(3)).cloned().collect()
    }

    fn score(&mut self) -> Score {
        Score::from_tenths(10 + i64::try_from(self.below(41)).unwrap()).unwrap()
    }

    fn confidence(&mut self) -> Confidence {
        Confidence::from_hundredths(i64::try_from(self.below(101)).unwrap()).unwrap()
    }

    pub fn moment(&mut self) -> Timestamp {
        // Few different moments, so that many conversations begin together, at the ends of days, too.
        let millis =
            self.below(DAYS) * DAY_MILLIS.unsigned_abs() + self.choose(&[0, 1, 86_399_999, 43_200_000, 500]);
        // `STARTED` is 7 hours after midnight.
        STARTED.plus_millis(-7 * 3_600_000 + i64::try_from(millis).unwrap())
    }

    fn subject(&mut self) -> String {
        let words: Vec<&str> = (0..self.below(4)).map(|_| self.choose(&WORDS)).collect();
        words.join(self.choose(&[" ", ", ", "-"]))
    }

    pub fn event(&mut self, organization_id: OrganizationId) -> ConversationEvaluated {
        let started_at = self.moment();
        let mut event = evaluated(organization_id, started_at);
        event.ticket.external_id = format!("T-{}", self.below(40));
        event.ticket.source = self.choose(&SOURCES).to_owned();
        event.ticket.subject = (!self.one_in(5)).then(|| self.subject());
        event.ticket.agents = (1..=3).filter(|_| self.one_in(3)).map(agent).collect();
        if self.one_in(12) {
            event.outcome = EvaluationOutcome::Failed { error_message: "no".to_owned() };
            return event;
        }
        changed(event, |evaluation| self.change(evaluation))
    }

    fn change(&mut self, evaluation: &mut Evaluation) {
        evaluation.language = self.choose(&LANGUAGES).to_owned();
        evaluation.ai_involvement = self.choose(AiInvolvement::ALL);
        let tools = self.subset(<AiTool as Named>::ALL);
        evaluation.ai_tools = tools.into_iter().take(3).map(tool_use).collect();
        evaluation.resolution.status = self.choose(<_ as Named>::ALL);
        evaluation.resolution.resolved_by = self.choose(<_ as Named>::ALL);
        evaluation.resolution.basis = self.choose(<_ as Named>::ALL);
        evaluation.charge.assessment = self.choose(<_ as Named>::ALL);
        evaluation.charge.reasons = self.subset(<_ as Named>::ALL);
        evaluation.handoff.state = self.choose(<_ as Named>::ALL);
        evaluation.flags = self.subset(<_ as Named>::ALL);
        evaluation.scorer.kind = self.choose(<_ as Named>::ALL);
        if self.one_in(6) {
            evaluation.status = EvaluationStatus::NotApplicable;
            evaluation.axis = None;
            return;
        }
        let Some(axis) = &mut evaluation.axis else { return };
        axis.score = self.score();
        axis.band = self.choose(AxisBand::ALL);
        axis.dimensions.resolution_accuracy.score = self.score();
        axis.dimensions.interaction_effort.score = self.score();
        axis.dimensions.handoff_smoothness.score = self.score();
        axis.dimensions.resolution_accuracy.confidence = self.confidence();
    }

    /// One to three values, with the probability 1 / `chances`; otherwise none.
    fn few<T: Named>(&mut self, chances: u64) -> Vec<T> {
        if !self.one_in(chances) {
            return Vec::new();
        }
        let mut values: Vec<T> = (0..=self.below(3)).map(|_| self.choose(T::ALL)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    /// One to three texts, with the probability 1 / `chances`; otherwise none.
    fn texts(&mut self, chances: u64, text: impl Fn(&mut Self) -> String) -> Vec<String> {
        if !self.one_in(chances) {
            return Vec::new();
        }
        (0..=self.below(3)).map(|_| text(self)).collect()
    }

    /// One to three words of subjects.
    fn words(&mut self) -> String {
        let words: Vec<String> = (0..=self.below(3)).map(|_| self.choose(&WORDS).to_lowercase()).collect();
        words.join(self.choose(&[" ", ", "]))
    }

    /// Valid filters: those that contradict each other are drawn again.
    pub fn filters(&mut self) -> EvaluationFilters {
        loop {
            let filters = self.any_filters();
            if let Ok(filters) = EvaluationFilters::parse(filters.to_pairs()) {
                return filters;
            }
        }
    }

    fn any_filters(&mut self) -> EvaluationFilters {
        // Each filter but the period, tools and agents is set with the probability 1 / `rare`.
        let rare = self.choose(&[6, 12, 30, 1_000]);
        let (one, other) = (self.moment(), self.moment());
        let (from, to) = (one.min(other), one.max(other).plus_millis(i64::try_from(self.below(2)).unwrap()));
        let mut tools: Vec<_> = self.few::<AiTool>(rare).into_iter().map(OrNone::Value).collect();
        tools.extend(self.one_in(3 * rare).then_some(OrNone::None));
        let agents = (1..=3).filter(|_| self.one_in(rare)).map(|number| OrNone::Value(agent(number).id));
        let mut agents: Vec<_> = agents.collect();
        agents.extend(self.one_in(3 * rare).then_some(OrNone::None));
        EvaluationFilters {
            from: (!self.one_in(3)).then_some(from),
            to: (!self.one_in(3)).then_some(to),
            external_id: self.texts(rare, |random| format!("T-{}", random.below(45))),
            subject: self.texts(rare, Self::words),
            search: self.one_in(rare).then(|| self.choose(&["late ORDER", "T-7", "t", "refund"]).to_owned()),
            source: self.texts(rare, |random| random.choose(&SOURCES).to_owned()),
            ai_tool: tools,
            agent: agents,
            involvement: self.few(rare),
            resolution: self.few(rare),
            resolved_by: self.few(rare),
            basis: self.few(rare),
            charge: self.few(rare),
            charge_reason: self.few(rare),
            handoff: self.few(rare),
            band: self.few(rare),
            axis_band: self.few(rare),
            axis_min: self.one_in(rare).then(|| self.score()),
            axis_max: self.one_in(rare).then(|| self.score()),
            resolution_accuracy_band: self.few(rare),
            resolution_accuracy_min: self.one_in(rare).then(|| self.score()),
            resolution_accuracy_max: self.one_in(rare).then(|| self.score()),
            interaction_effort_band: self.few(rare),
            interaction_effort_min: self.one_in(rare).then(|| self.score()),
            interaction_effort_max: self.one_in(rare).then(|| self.score()),
            handoff_smoothness_band: self.few(rare),
            handoff_smoothness_min: self.one_in(rare).then(|| self.score()),
            handoff_smoothness_max: self.one_in(rare).then(|| self.score()),
            confidence_min: self.one_in(rare).then(|| self.confidence()),
            confidence_max: self.one_in(rare).then(|| self.confidence()),
            language: self.texts(rare, |random| random.choose(&LANGUAGES).to_owned()),
            flag: self.few(rare),
            scorer: self.few(rare),
            status: self.few::<ResultStatus>(rare),
        }
    }
}

fn agent(number: u128) -> AgentFacts {
    AgentFacts {
        id: Uuid::from_u128(number << 64 | number).into(),
        external_id: format!("bot-{number}"),
        name: format!("Bot {number}"),
    }
}

fn tool_use(tool: AiTool) -> AiToolUse {
    AiToolUse { ai_tool: Some(tool), agent_id: None, agent_external_id: None, messages: 1 }
}

/// Whether a row satisfies filters as they are documented.
pub fn satisfies(row: &EvaluationItem, filters: &EvaluationFilters) -> bool {
    let (ticket, evaluation) = (&row.ticket, &row.evaluation);
    let unset_or = |is_unset: bool, is_satisfied: bool| is_unset || is_satisfied;
    macro_rules! is_one_of {
        ($values:ident, $value:expr) => {
            unset_or(filters.$values.is_empty(), $value.is_some_and(|value| filters.$values.contains(&value)))
        };
    }
    let has_words = |text: &str| {
        let subject: Vec<String> = words_of(&ticket.subject).collect();
        words_of(text).all(|word| subject.contains(&word))
    };
    let evaluated = evaluation.status != ResultStatus::Failed;
    let in_range = |name: &str, score: fn(&ItemScores) -> Score| {
        let (_, filter) = filters.scores().into_iter().find(|(other, _)| *other == name).unwrap();
        let is_filtered = !filter.bands.is_empty() || filter.min.is_some() || filter.max.is_some();
        !is_filtered || evaluation.scores.as_ref().is_some_and(|scores| filter.matches(score(scores)))
    };
    let confidence = evaluation.scores.map(|scores| scores.confidence);
    filters.from.is_none_or(|from| ticket.started_at >= from)
        && filters.to.is_none_or(|to| ticket.started_at < to)
        && unset_or(filters.external_id.is_empty(), filters.external_id.contains(&ticket.external_id))
        && unset_or(filters.subject.is_empty(), filters.subject.iter().any(|text| has_words(text)))
        && filters.search.as_ref().is_none_or(|text| has_words(text) || *text == ticket.external_id)
        && unset_or(filters.source.is_empty(), filters.source.contains(&ticket.source))
        && unset_or(
            filters.ai_tool.is_empty(),
            filters.ai_tool.iter().any(|tool| match tool {
                OrNone::Value(tool) => evaluation.ai_tools.contains(tool),
                OrNone::None => evaluated && evaluation.ai_tools.is_empty(),
            }),
        )
        && unset_or(
            filters.agent.is_empty(),
            filters.agent.iter().any(|agent| match agent {
                OrNone::Value(id) => ticket.agents.iter().any(|agent| agent.id == *id),
                OrNone::None => ticket.agents.is_empty(),
            }),
        )
        && is_one_of!(involvement, evaluation.ai_involvement)
        && is_one_of!(resolution, evaluation.resolution)
        && is_one_of!(resolved_by, evaluation.resolved_by)
        && is_one_of!(basis, evaluation.basis)
        && is_one_of!(charge, evaluation.charge)
        && is_one_of!(handoff, evaluation.handoff)
        && is_one_of!(scorer, evaluation.scorer)
        && is_one_of!(band, evaluation.scores.map(|scores| scores.band))
        && is_one_of!(language, evaluation.language.clone())
        && unset_or(filters.status.is_empty(), filters.status.contains(&evaluation.status))
        && unset_or(
            filters.charge_reason.is_empty(),
            evaluation.charge_reasons.iter().any(|reason| filters.charge_reason.contains(reason)),
        )
        && unset_or(filters.flag.is_empty(), evaluation.flags.iter().any(|flag| filters.flag.contains(flag)))
        && in_range("axis", |scores| scores.axis)
        && in_range("resolution_accuracy", |scores| scores.resolution_accuracy)
        && in_range("interaction_effort", |scores| scores.interaction_effort)
        && in_range("handoff_smoothness", |scores| scores.handoff_smoothness)
        && filters.confidence_min.is_none_or(|min| confidence.is_some_and(|confidence| confidence >= min))
        && filters.confidence_max.is_none_or(|max| confidence.is_some_and(|confidence| confidence <= max))
}
