//! Labels of filters and of their values.

use assay_contracts::conversation::AiTool;
use assay_contracts::evaluation::{
    AiInvolvement, AxisBand, ChargeAssessment, ChargeReason, Flag, HandoffState, Named, ResolutionBasis,
    ResolutionStatus, ResolvedBy, ScorerKind,
};
use assay_contracts::evaluations::ResultStatus;

use super::words::{capitalized, words};

/// A filter whose values are a closed list.
pub(crate) struct ClosedFilter {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) values: Vec<&'static str>,
}

fn closed_filter<T: Named>(name: &'static str, label: &'static str) -> ClosedFilter {
    ClosedFilter { name, label, values: T::ALL.iter().map(|value| value.name()).collect() }
}

/// The filters with closed lists, in the order of the form.
pub(crate) fn closed_filters() -> Vec<ClosedFilter> {
    vec![
        closed_filter::<ChargeAssessment>("charge", "Charge"),
        closed_filter::<ChargeReason>("charge_reason", "Reason of the charge"),
        // The band of the conversation; `axis_band` is that of the AXIS score alone.
        closed_filter::<AxisBand>("band", "Band"),
        closed_filter::<ResolutionStatus>("resolution", "Resolution"),
        closed_filter::<ResolvedBy>("resolved_by", "Resolved by"),
        closed_filter::<ResolutionBasis>("basis", "Basis"),
        closed_filter::<HandoffState>("handoff", "Handoff"),
        closed_filter::<AiInvolvement>("involvement", "Involvement"),
        closed_filter::<Flag>("flag", "Flags"),
        closed_filter::<ScorerKind>("scorer", "Scorer"),
        closed_filter::<ResultStatus>("status", "Status"),
        closed_filter::<AxisBand>("axis_band", "Band of the AXIS score alone"),
        closed_filter::<AxisBand>("resolution_accuracy_band", "Band of resolution accuracy"),
        closed_filter::<AxisBand>("interaction_effort_band", "Band of interaction effort"),
        closed_filter::<AxisBand>("handoff_smoothness_band", "Band of handoff smoothness"),
    ]
}

/// The scores that have a range and bands: the prefix of their parameters, and the label.
pub(crate) const SCORES: [(&str, &str); 4] = [
    ("axis", "AXIS"),
    ("resolution_accuracy", "Resolution accuracy"),
    ("interaction_effort", "Interaction effort"),
    ("handoff_smoothness", "Handoff smoothness"),
];

/// The values of the filter `ai_tool`: all tools, and `none`.
pub(crate) fn ai_tools() -> Vec<&'static str> {
    AiTool::ALL.iter().map(|tool| tool.as_str()).chain(["none"]).collect()
}

/// The label of a filter; an unknown name as it is.
pub(crate) fn filter_label(name: &str) -> String {
    if let Some(filter) = closed_filters().into_iter().find(|filter| filter.name == name) {
        return filter.label.to_owned();
    }
    for (score, label) in SCORES {
        match name.strip_prefix(score) {
            Some("_min") => return format!("{label} from"),
            Some("_max") => return format!("{label} to"),
            _ => {}
        }
    }
    let label = match name {
        "from" => "From",
        "to" => "To",
        "external_id" => "External id",
        "subject" => "Words of the subject",
        "search" => "Search",
        "source" => "Source",
        "ai_tool" => "AI tool",
        "agent" => "Agent",
        "language" => "Language",
        "confidence_min" => "Confidence from",
        "confidence_max" => "Confidence to",
        unknown => unknown,
    };
    label.to_owned()
}

pub(crate) fn value_label(name: &str, value: &str) -> String {
    match name {
        "ai_tool" => ai_tool_label(value),
        "language" => language_label(value),
        name if closed_filters().iter().any(|filter| filter.name == name) => words(value),
        _ => value.to_owned(),
    }
}

/// The label of a value of the filter `ai_tool`: of a tool, or of `none`.
pub(crate) fn ai_tool_label(tool: &str) -> String {
    match tool {
        "none" => "no tool named".to_owned(),
        "helpScout" => "Help Scout".to_owned(),
        "hubspot" => "HubSpot".to_owned(),
        other => capitalized(other),
    }
}

/// The languages that pages name: code and name, in the order of the form.
const LANGUAGES: [(&str, &str); 17] = [
    ("zh", "Chinese"),
    ("cs", "Czech"),
    ("da", "Danish"),
    ("nl", "Dutch"),
    ("en", "English"),
    ("fr", "French"),
    ("de", "German"),
    ("it", "Italian"),
    ("ja", "Japanese"),
    ("pl", "Polish"),
    ("pt", "Portuguese"),
    ("ru", "Russian"),
    ("es", "Spanish"),
    ("sv", "Swedish"),
    ("tr", "Turkish"),
    ("uk", "Ukrainian"),
    ("und", "not determined"),
];

/// The codes of the languages that have a name.
pub(crate) fn languages() -> Vec<&'static str> {
    LANGUAGES.iter().map(|(code, _)| *code).collect()
}

/// The name of a language; its code when no name is listed here.
pub(crate) fn language_label(code: &str) -> String {
    let named = LANGUAGES.iter().find(|(known, _)| *known == code);
    named.map_or(code, |(_, name)| *name).to_owned()
}

pub(crate) fn reason_meaning(reason: ChargeReason) -> &'static str {
    match reason {
        ChargeReason::HumanResolved => "a human solved it",
        ChargeReason::Escalated => "passed on to a human",
        ChargeReason::CustomerRejected => "the customer said that it did not help",
        ChargeReason::SilenceOnly => "the customer did not write again",
        ChargeReason::NoSubstantiveAnswer => "no answer to the question",
        ChargeReason::HumanRequestIgnored => "asked for a human and got none",
        ChargeReason::Reopened => "came back with the same issue",
        ChargeReason::Partial => "a part was left open",
        ChargeReason::PlannedHandoff => "the AI agent handed over as planned",
        ChargeReason::HumanWorkInNotes => "a human wrote only internal comments",
    }
}

/// The resolution in words: "resolved by human".
pub(crate) fn resolution_words(status: ResolutionStatus, by: ResolvedBy) -> String {
    match (status, by) {
        (ResolutionStatus::NotResolved, _) => "not resolved".to_owned(),
        (status, ResolvedBy::None | ResolvedBy::Unknown) => words(status.as_str()),
        (ResolutionStatus::Partial, by) => format!("partly, by {}", words(by.as_str())),
        (ResolutionStatus::Resolved, by) => format!("resolved by {}", words(by.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_contracts::evaluations::FILTER_NAMES;

    #[test]
    fn every_filter_has_a_label() {
        for name in FILTER_NAMES {
            let label = filter_label(name);
            assert!(label.chars().next().is_some_and(char::is_uppercase), "{name}: {label}");
        }
    }

    #[test]
    fn values_are_shown_as_words() {
        assert_eq!(value_label("charge_reason", "HUMAN_RESOLVED"), "human resolved");
        assert_eq!(value_label("language", "de"), "German");
        assert_eq!(value_label("subject", "HUMAN_RESOLVED"), "HUMAN_RESOLVED");
        assert_eq!(resolution_words(ResolutionStatus::Resolved, ResolvedBy::Ai), "resolved by AI");
    }
}
