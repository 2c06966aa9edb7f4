//! Terms: integers that stand for the values of a row, so that one inverted index of PostgreSQL finds the rows of any filter. The
//! term of an enumerated value or a score is exact. The term of a text is a hash of organization, kind and text: conditions
//! with one also compare the text.

use assay_contracts::evaluations::words_of;
use assay_contracts::ids::{AgentId, OrganizationId};

use super::evaluation_facts::EvaluationFacts;
use super::facets::{CODE_FIELDS, CodeField, SET_FIELDS, SetField};

/// Number of terms that each field may have.
const STRIDE: i32 = 256;

const AGENTS: i32 = 13;

/// Numbers of the fields of scores, whose terms are the tenths. Facets have the numbers 1 to 12, agents `AGENTS`.
pub const AXIS: i32 = 20;
pub const RESOLUTION_ACCURACY: i32 = 21;
pub const INTERACTION_EFFORT: i32 = 22;
pub const HANDOFF_SMOOTHNESS: i32 = 23;
/// Confidence in steps of five hundredths: conditions also compare the exact confidence.
pub const CONFIDENCE: i32 = 24;
pub const CONFIDENCE_STEP: u8 = 5;

/// The term of rows without a registered agent.
pub const WITHOUT_AGENTS: i32 = AGENTS * STRIDE;

/// Kinds of texts.
#[derive(Debug, Clone, Copy)]
pub enum TextKind {
    SubjectWord = 1,
    ExternalId = 2,
    Source = 3,
    Language = 4,
    Agent = 5,
}

/// The terms of a row, sorted.
pub fn terms_of(facts: &EvaluationFacts) -> Vec<i32> {
    let (ticket, evaluation) = (&facts.ticket, &facts.evaluation);
    let organization = facts.organization_id;
    let mut terms = Vec::with_capacity(32);
    let facets = evaluation.facets;
    terms.extend(CODE_FIELDS.iter().map(|field| code_term(*field, facets.code(*field))));
    for field in SET_FIELDS {
        let set = facets.set(field);
        terms.extend((0..field.bits).filter(|bit| set >> bit & 1 == 1).map(|bit| bit_term(field, bit)));
        if set == 0 && facets.is_evaluated() {
            terms.push(empty_term(field));
        }
    }
    if let Some(scores) = &evaluation.scores {
        terms.extend([
            tenths_term(AXIS, scores.axis.tenths()),
            tenths_term(RESOLUTION_ACCURACY, scores.resolution_accuracy.tenths()),
            tenths_term(INTERACTION_EFFORT, scores.interaction_effort.tenths()),
            tenths_term(HANDOFF_SMOOTHNESS, scores.handoff_smoothness.tenths()),
            confidence_term(scores.confidence.hundredths()),
        ]);
    }
    terms.push(text_term(organization, TextKind::ExternalId, &ticket.external_id));
    terms.push(text_term(organization, TextKind::Source, &ticket.source));
    terms.extend(evaluation.language.iter().map(|code| text_term(organization, TextKind::Language, code)));
    if ticket.agents.is_empty() {
        terms.push(WITHOUT_AGENTS);
    }
    terms.extend(ticket.agents.iter().map(|agent| agent_term(organization, agent.id)));
    let words = words_of(&ticket.subject);
    terms.extend(words.map(|word| text_term(organization, TextKind::SubjectWord, &word)));
    terms.sort_unstable();
    terms.dedup();
    terms
}

pub fn code_term(field: CodeField, code: u32) -> i32 {
    field.number * STRIDE + i32::try_from(code).unwrap_or_default()
}

pub fn bit_term(field: SetField, bit: u32) -> i32 {
    field.number * STRIDE + i32::try_from(bit).unwrap_or_default() + 1
}

/// The term of evaluations with an empty set; failed evaluations have no sets and no such term.
pub fn empty_term(field: SetField) -> i32 {
    field.number * STRIDE
}

pub fn tenths_term(field: i32, tenths: u8) -> i32 {
    field * STRIDE + i32::from(tenths)
}

pub fn confidence_term(hundredths: u8) -> i32 {
    CONFIDENCE * STRIDE + i32::from(hundredths / CONFIDENCE_STEP)
}

pub fn agent_term(organization: OrganizationId, agent: AgentId) -> i32 {
    text_term(organization, TextKind::Agent, &agent.to_string())
}

/// FNV-1a, folded to 30 bits, above all other terms. It is stored, so it must never change.
pub fn text_term(organization: OrganizationId, kind: TextKind, text: &str) -> i32 {
    let kind = [kind as u8];
    let organization = organization.as_uuid();
    let bytes = organization.as_bytes().iter().chain(&kind).chain(text.as_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let folded = (hash >> 32 ^ hash) & 0x3fff_ffff;
    i32::try_from(folded).unwrap_or_default() | 0x4000_0000
}
