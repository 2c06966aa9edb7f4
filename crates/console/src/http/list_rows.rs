//! Rows of the list of conversations.

use assay_contracts::agent::AgentFacts;
use assay_contracts::evaluations::{EvaluationItem, ItemEvaluation, ItemScores, ResultStatus};
use assay_contracts::validation::shortened;
use assay_platform::runtime::now;

use crate::domain::{
    ListState, MAX_NAME_CHARACTERS, PageTime, Run, ai_tool_label, language_label, resolution_words, runs,
    with_query, words,
};

/// Longer texts are shortened in the list, so that no page of it is over 100 kB; the page of the conversation has all of them.
const MAX_SUBJECT_CHARACTERS: usize = 200;
const MAX_ID_CHARACTERS: usize = 100;

pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) address: String,
    pub(crate) time: PageTime,
    pub(crate) subject: Vec<Run>,
    pub(crate) external_id: Vec<Run>,
    pub(crate) tool: String,
    pub(crate) agents: String,
    pub(crate) scores: Option<ItemScores>,
    pub(crate) status: &'static str,
    pub(crate) resolution: String,
    pub(crate) basis: String,
    pub(crate) charge: String,
    pub(crate) charge_code: &'static str,
    pub(crate) reasons: String,
    pub(crate) language: String,
    pub(crate) handoff: String,
    pub(crate) flags: String,
    pub(crate) source: String,
}

/// The row of a conversation; its link carries the state of the list, so that next, previous and the way back follow it.
pub(crate) fn row(item: &EvaluationItem, state: &ListState) -> Row {
    let (ticket, evaluation) = (&item.ticket, &item.evaluation);
    let id = ticket.id.to_string();
    let subject = if ticket.subject.trim().is_empty() { "No subject" } else { &ticket.subject };
    Row {
        address: with_query(&format!("/console/conversations/{id}"), &state.pairs_without_cursor()),
        id,
        time: PageTime::recent(ticket.started_at, now()),
        subject: runs(&shortened(subject, MAX_SUBJECT_CHARACTERS)),
        external_id: runs(&shortened(&ticket.external_id, MAX_ID_CHARACTERS)),
        tool: tool(evaluation),
        agents: shortened(&join(ticket.agents.iter().map(agent_name)), MAX_NAME_CHARACTERS),
        scores: evaluation.scores,
        status: match evaluation.status {
            ResultStatus::Scored => "scored",
            ResultStatus::NotApplicable => "not applicable",
            ResultStatus::Failed => "failed",
        },
        resolution: match evaluation.resolution.zip(evaluation.resolved_by) {
            Some((status, by)) => resolution_words(status, by),
            None => String::new(),
        },
        basis: evaluation.basis.map(|basis| words(basis.as_str())).unwrap_or_default(),
        charge: evaluation.charge.map(|charge| words(charge.as_str())).unwrap_or_default(),
        charge_code: evaluation.charge.map(|charge| charge.as_str()).unwrap_or_default(),
        reasons: join(evaluation.charge_reasons.iter().map(|reason| words(reason.as_str()))),
        language: evaluation.language.as_deref().map(language_label).unwrap_or_default(),
        handoff: evaluation.handoff.map(|handoff| words(handoff.as_str())).unwrap_or_default(),
        flags: join(evaluation.flags.iter().map(|flag| words(flag.as_str()))),
        source: shortened(&ticket.source, MAX_NAME_CHARACTERS),
    }
}

fn agent_name(agent: &AgentFacts) -> String {
    let is_nameless = agent.name.trim().is_empty();
    if is_nameless { agent.external_id.clone() } else { agent.name.clone() }
}

fn tool(evaluation: &ItemEvaluation) -> String {
    if evaluation.ai_tools.is_empty() {
        return "–".to_owned();
    }
    join(evaluation.ai_tools.iter().map(|tool| ai_tool_label(tool.as_str())))
}

fn join(values: impl Iterator<Item = String>) -> String {
    values.collect::<Vec<_>>().join(", ")
}
