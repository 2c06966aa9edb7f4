//! The conditions of filters, as text for the statements of lists and files. They mean the same as [`crate::domain::matcher`].
//!
//! Ids, numbers and codes are literals: they are not texts of callers, and the planner needs their values. Texts of callers are
//! bound parameters.
//!
//! In PostgreSQL an index of terms ([`crate::domain::terms`]) finds the rows. Terms of codes, sets and scores are exact. Those of texts and
//! agents are hashes, those of confidence are steps: they find candidates, and the column decides.

use assay_contracts::evaluation::Named;
use assay_contracts::evaluations::{EvaluationFilters, OrNone, words_of};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;

use crate::domain::day::start_of;
use crate::domain::facets::{self, CodeField, SetField, bit_of, code_of};
use crate::domain::matcher::allowed_tenths;
use crate::domain::terms::{self, TextKind, bit_term, code_term, empty_term, tenths_term, text_term};

/// With more values of a score than this, their terms would find most rows: the column is compared instead.
const MAX_SCORE_TERMS: usize = 20;

/// The SQL of one of the two databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Has the column `terms` with an inverted index.
    Postgres,
    Sqlite,
}

/// The columns that the conditions of a period compare.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeriodColumns {
    organization_id: &'static str,
    date: &'static str,
}

/// The columns of `evaluation_facts`, with the alias `facts`.
pub(super) const FACTS: PeriodColumns =
    PeriodColumns { organization_id: "facts.organization_id", date: "facts.started_at" };
/// The columns of `evaluation_rows`, with the alias `lines`.
pub(super) const LINES: PeriodColumns =
    PeriodColumns { organization_id: "lines.organization_id", date: "lines.conversation_started_at" };

/// Conditions joined by `AND`, with the values of their placeholders `$1`, `$2`, …
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Conditions {
    pub(super) sql: String,
    pub(super) bindings: Vec<String>,
}

struct Builder {
    dialect: Dialect,
    organization: OrganizationId,
    parts: Vec<String>,
    bindings: Vec<String>,
}

impl Conditions {
    /// The organization and the period alone.
    pub(super) fn of_period(
        organization: OrganizationId,
        filters: &EvaluationFilters,
        columns: PeriodColumns,
    ) -> Self {
        let (from, to) = (filters.from.map(Timestamp::as_millis), filters.to.map(Timestamp::as_millis));
        Self::between(organization, (from, to), columns)
    }

    /// All rows of these days, both included, of `evaluation_facts`.
    pub(super) fn of_days(organization: OrganizationId, (first, last): (i64, i64)) -> Self {
        Self::between(organization, (Some(start_of(first)), Some(start_of(last + 1))), FACTS)
    }

    fn between(
        organization: OrganizationId,
        (from, to): (Option<i64>, Option<i64>),
        columns: PeriodColumns,
    ) -> Self {
        let PeriodColumns { organization_id, date } = columns;
        let mut parts = vec![format!("{organization_id} = '{organization}'")];
        parts.extend(from.map(|from| format!("{date} >= {from}")));
        parts.extend(to.map(|to| format!("{date} < {to}")));
        Self { sql: parts.join(" AND "), bindings: Vec::new() }
    }

    /// All filters, on `evaluation_facts` with the alias `facts`.
    pub(super) fn of(organization: OrganizationId, filters: &EvaluationFilters, dialect: Dialect) -> Self {
        let period = Self::of_period(organization, filters, FACTS);
        let mut builder = Builder { dialect, organization, parts: vec![period.sql], bindings: Vec::new() };
        builder.codes(facets::STATUS, &filters.status);
        builder.codes(facets::INVOLVEMENT, &filters.involvement);
        builder.codes(facets::RESOLUTION, &filters.resolution);
        builder.codes(facets::RESOLVED_BY, &filters.resolved_by);
        builder.codes(facets::BASIS, &filters.basis);
        builder.codes(facets::CHARGE, &filters.charge);
        builder.codes(facets::HANDOFF, &filters.handoff);
        builder.codes(facets::BAND, &filters.band);
        builder.codes(facets::SCORER, &filters.scorer);
        builder.sets(facets::CHARGE_REASONS, &filters.charge_reason);
        builder.sets(facets::FLAGS, &filters.flag);
        builder.ai_tools(filters);
        builder.scores(filters);
        builder.confidence(filters);
        builder.texts("facts.source", TextKind::Source, &filters.source);
        builder.texts("facts.language", TextKind::Language, &filters.language);
        builder.texts("facts.external_id", TextKind::ExternalId, &filters.external_id);
        builder.agents(filters);
        builder.subject(filters);
        builder.search(filters);
        Self { sql: builder.parts.join(" AND "), bindings: builder.bindings }
    }

    /// Adds a condition without placeholders.
    pub(super) fn and(mut self, condition: &str) -> Self {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self
    }
}

/// The expression for the code of a field; 0: no value.
pub(super) fn code_of_field(field: CodeField) -> String {
    format!("((facts.codes >> {}) & {})", field.shift, (1 << field.bits) - 1)
}

/// The condition that a row has any of these terms.
pub(super) fn any_term(terms: &[i32]) -> String {
    format!("facts.terms && '{{{}}}'::integer[]", list(terms))
}

fn list<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

impl Builder {
    fn codes<T: Named>(&mut self, field: CodeField, values: &[T]) {
        if values.is_empty() {
            return;
        }
        let codes: Vec<u32> = values.iter().map(|value| code_of(*value)).collect();
        self.parts.push(match self.dialect {
            Dialect::Postgres => {
                any_term(&codes.iter().map(|code| code_term(field, *code)).collect::<Vec<_>>())
            }
            Dialect::Sqlite => format!("{} IN ({})", code_of_field(field), list(&codes)),
        });
    }

    /// The rows whose set has any of these values.
    fn sets<T: Named>(&mut self, field: SetField, values: &[T]) {
        self.sets_or_empty(field, values, false);
    }

    /// The rows whose set has any of these values, or is empty if `or_empty`.
    fn sets_or_empty<T: Named>(&mut self, field: SetField, values: &[T], or_empty: bool) {
        if values.is_empty() && !or_empty {
            return;
        }
        let set = format!("((facts.sets >> {}) & {})", field.shift, (1_u64 << field.bits) - 1);
        let bits = values.iter().fold(0, |bits, value| bits | bit_of(*value));
        let involvement = code_of_field(facets::INVOLVEMENT);
        self.parts.push(match self.dialect {
            Dialect::Postgres => {
                // Bits are numbered from 0, codes from 1.
                let terms = values.iter().map(|value| bit_term(field, code_of(*value) - 1));
                any_term(&terms.chain(or_empty.then(|| empty_term(field))).collect::<Vec<_>>())
            }
            Dialect::Sqlite if or_empty => {
                // Failed evaluations have no involvement, and no sets, either.
                format!("(({set} & {bits}) <> 0 OR ({set} = 0 AND {involvement} <> 0))")
            }
            Dialect::Sqlite => format!("({set} & {bits}) <> 0"),
        });
    }

    fn ai_tools(&mut self, filters: &EvaluationFilters) {
        let tools: Vec<_> = filters.ai_tool.iter().filter_map(|tool| tool.value()).collect();
        self.sets_or_empty(facets::AI_TOOLS, &tools, filters.ai_tool.contains(&OrNone::None));
    }

    fn scores(&mut self, filters: &EvaluationFilters) {
        for ((name, score), field) in filters.scores().into_iter().zip([
            terms::AXIS,
            terms::RESOLUTION_ACCURACY,
            terms::INTERACTION_EFFORT,
            terms::HANDOFF_SMOOTHNESS,
        ]) {
            let Some(allowed) = allowed_tenths(score) else { continue };
            // Scores are 1.0 to 5.0; `allowed` has a bit for each tenth.
            let tenths: Vec<u8> = (10..=50).filter(|tenths| allowed >> tenths & 1 == 1).collect();
            if tenths.is_empty() {
                self.parts.push("1 = 0".to_owned());
            } else if self.dialect == Dialect::Postgres && tenths.len() <= MAX_SCORE_TERMS {
                let terms: Vec<i32> = tenths.iter().map(|tenths| tenths_term(field, *tenths)).collect();
                self.parts.push(any_term(&terms));
            } else {
                self.parts.push(format!("facts.{name} IN ({})", list(&tenths)));
            }
        }
    }

    fn confidence(&mut self, filters: &EvaluationFilters) {
        if filters.confidence_min.or(filters.confidence_max).is_none() {
            return;
        }
        let min = filters.confidence_min.map_or(0, |min| min.hundredths());
        let max = filters.confidence_max.map_or(100, |max| max.hundredths());
        self.parts.push(format!("facts.confidence BETWEEN {min} AND {max}"));
        let mut steps: Vec<i32> = (min..=max).map(terms::confidence_term).collect();
        steps.dedup();
        // The confidence has half as many terms as a score.
        if self.dialect == Dialect::Postgres && steps.len() <= MAX_SCORE_TERMS / 2 {
            self.parts.push(any_term(&steps));
        }
    }

    fn texts(&mut self, column: &str, kind: TextKind, values: &[String]) {
        if values.is_empty() {
            return;
        }
        let placeholders: Vec<String> = values.iter().map(|value| self.bind(value.clone())).collect();
        self.parts.push(format!("{column} IN ({})", placeholders.join(", ")));
        if self.dialect == Dialect::Postgres {
            let terms: Vec<i32> =
                values.iter().map(|value| text_term(self.organization, kind, value)).collect();
            self.parts.push(any_term(&terms));
        }
    }

    fn agents(&mut self, filters: &EvaluationFilters) {
        let (mut either, mut agent_terms) = (Vec::new(), Vec::new());
        for agent in &filters.agent {
            match agent {
                OrNone::Value(id) => {
                    // `agents` is compact JSON. An external id or a name may hold the same text, but with its quotes escaped.
                    let member = format!("\"id\":\"{id}\"");
                    either.push(format!("{}(facts.agents, '{member}') > 0", self.position_function()));
                    agent_terms.push(terms::agent_term(self.organization, *id));
                }
                OrNone::None => {
                    either.push("facts.agents = '[]'".to_owned());
                    agent_terms.push(terms::WITHOUT_AGENTS);
                }
            }
        }
        if either.is_empty() {
            return;
        }
        self.parts.push(format!("({})", either.join(" OR ")));
        if self.dialect == Dialect::Postgres {
            self.parts.push(any_term(&agent_terms));
        }
    }

    fn subject(&mut self, filters: &EvaluationFilters) {
        if filters.subject.is_empty() {
            return;
        }
        let either: Vec<String> = filters.subject.iter().map(|words| self.words(words)).collect();
        self.parts.push(format!("({})", either.join(" OR ")));
    }

    fn search(&mut self, filters: &EvaluationFilters) {
        let Some(search) = &filters.search else { return };
        let words = self.words(search);
        let placeholder = self.bind(search.clone());
        let term = text_term(self.organization, TextKind::ExternalId, search);
        let id = match self.dialect {
            Dialect::Postgres => format!("({} AND facts.external_id = {placeholder})", any_term(&[term])),
            Dialect::Sqlite => format!("facts.external_id = {placeholder}"),
        };
        self.parts.push(format!("({words} OR {id})"));
    }

    /// The condition that the subject has all words of a text.
    fn words(&mut self, text: &str) -> String {
        let mut words: Vec<String> = words_of(text).collect();
        words.sort_unstable();
        words.dedup();
        let mut all = Vec::new();
        if self.dialect == Dialect::Postgres {
            let terms: Vec<i32> =
                words.iter().map(|word| text_term(self.organization, TextKind::SubjectWord, word)).collect();
            all.push(format!("facts.terms @> '{{{}}}'::integer[]", list(&terms)));
        }
        for word in words {
            let placeholder = self.bind(format!(" {word} "));
            all.push(format!("{}(facts.subject_words, {placeholder}) > 0", self.position_function()));
        }
        format!("({})", all.join(" AND "))
    }

    /// The SQL function that returns the position of a text in another, from 1; 0: not found.
    fn position_function(&self) -> &'static str {
        match self.dialect {
            Dialect::Postgres => "strpos",
            Dialect::Sqlite => "instr",
        }
    }

    /// Adds a text; returns its placeholder.
    fn bind(&mut self, text: String) -> String {
        self.bindings.push(text);
        format!("${}", self.bindings.len())
    }
}
