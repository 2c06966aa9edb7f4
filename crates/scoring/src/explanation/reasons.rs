//! Reasons: one or two plain sentences for each score and verdict.

use assay_contracts::evaluation::{
    AiInvolvement, Effort, Flag, HandoffState, ResolutionBasis, ResolutionStatus, ResolvedBy, Signal,
};

use crate::audit::Verdict;
use crate::course::{CustomerCourse, EndState};
use crate::effort::EffortFindings;
use crate::handoff::{HandoffFindings, HandoffFlaw};
use crate::reliability::Reliability;

/// Minimum smoothness of a handoff that counts as smooth, or of a conversation that needed none.
const MIN_SMOOTH: f64 = 4.5;

/// Writes the reasons of an evaluation.
pub(crate) struct ReasonWriter<'t> {
    pub course: &'t CustomerCourse,
    pub effort: &'t EffortFindings,
    pub handoff: &'t HandoffFindings,
    pub reliability: &'t Reliability,
    pub involvement: AiInvolvement,
}

impl ReasonWriter<'_> {
    /// The reason of resolution accuracy; `signals` are those of the score, the strongest first.
    pub(crate) fn resolution_accuracy(&self, signals: &[Signal]) -> String {
        let ending = match self.course.end {
            EndState::Absent => "The customer did not write.",
            EndState::Confirmed => "The customer said or showed that the issue was solved.",
            EndState::Thanked => "The customer thanked for the answer at the end.",
            EndState::Accepted => {
                "The customer accepted the last answer without saying that the issue was solved."
            }
            EndState::Open => {
                "The customer's last message asks or tells something and does not say how it ended."
            }
            EndState::Doubting => "The customer was not convinced by the last answer.",
            EndState::Repeated => "The customer had to say the same thing again at the end.",
            EndState::Rejected => "The customer said or showed at the end that the issue was not solved.",
            EndState::AskedForHuman => "The customer asked for a human at the end.",
            EndState::GaveUp => "The customer gave up.",
        };
        // A small probability of a false claim must not contradict the customer's confirmation.
        let is_confirmed = matches!(self.course.end, EndState::Confirmed);
        let second = signals
            .iter()
            .filter(|signal| !(is_confirmed && signal.code == "ACTION_CLAIMED"))
            .find_map(|signal| second_sentence(&signal.code));
        second.map_or_else(|| ending.to_owned(), |second| format!("{ending} {second}"))
    }

    /// The reason of interaction effort.
    pub(crate) fn interaction_effort(&self) -> String {
        let Effort { customer_turns, repeated_information, clarifications } = self.effort.effort;
        let turns = times(customer_turns);
        let mut burdens = Vec::new();
        if repeated_information > 0 {
            burdens.push(format!("repeated information {}", times(repeated_information)));
        }
        if clarifications > 0 {
            burdens.push(format!("was asked back {}", times(clarifications)));
        }
        if !self.effort.loops.is_empty() {
            burdens.push("was given the same answer again".to_owned());
        }
        if burdens.is_empty() {
            format!("The customer wrote {turns} and neither repeated anything nor was asked back.")
        } else {
            let burdens: Vec<&str> = burdens.iter().map(String::as_str).collect();
            format!("The customer wrote {turns} and {}.", join(&burdens))
        }
    }

    /// The reason of handoff smoothness.
    pub(crate) fn handoff_smoothness(&self) -> String {
        match self.handoff.handoff.state {
            HandoffState::None if self.handoff.score < MIN_SMOOTH => {
                "Nobody asked for a human or promised one, but the issue seems to have needed one.".to_owned()
            }
            HandoffState::None => "No handoff to a human was needed.".to_owned(),
            HandoffState::OfferedNotTaken => {
                "A human was offered and the customer did not take the offer.".to_owned()
            }
            HandoffState::RequestedNotCompleted if self.handoff.requested_by_customer() => {
                "The customer asked for a human and none came.".to_owned()
            }
            HandoffState::RequestedNotCompleted => "A human was promised and none came.".to_owned(),
            HandoffState::Completed if self.handoff.flaws.is_empty() && self.handoff.score < MIN_SMOOTH => {
                "A human took over, but not smoothly.".to_owned()
            }
            HandoffState::Completed if self.handoff.flaws.is_empty() => {
                "A human took over without the customer having to ask or say anything twice.".to_owned()
            }
            HandoffState::Completed => {
                let mut flaws: Vec<&str> = self.handoff.flaws.iter().map(flaw_clause).collect();
                flaws.dedup();
                format!("A human took over, but {}.", join(&flaws))
            }
        }
    }

    /// The reason of the resolution.
    pub(crate) fn resolution(&self, verdict: &Verdict) -> String {
        let who = match verdict.resolved_by {
            ResolvedBy::Ai => "the AI agent",
            ResolvedBy::Human => "a human teammate",
            ResolvedBy::Customer => "the customer alone",
            ResolvedBy::None | ResolvedBy::Unknown => "somebody who cannot be told from the transcript",
        };
        let first = match (verdict.basis, verdict.status) {
            (ResolutionBasis::CustomerConfirmed, _) => {
                format!("The customer confirmed the solution by {who}.")
            }
            (ResolutionBasis::HumanResolved, _) => "A human teammate solved the issue.".to_owned(),
            (ResolutionBasis::ActionCompleted, ResolutionStatus::Resolved) => {
                format!(
                    "The action was carried out by {who} and the customer ended the conversation content."
                )
            }
            (ResolutionBasis::ActionCompleted, _) => {
                "The answer says that the action was carried out, but the customer did not react.".to_owned()
            }
            (ResolutionBasis::AnswerGiven, ResolutionStatus::Resolved) => {
                format!(
                    "The question was answered by {who} and the customer ended the conversation politely."
                )
            }
            (ResolutionBasis::AnswerGiven, _) if verdict.resolved_by == ResolvedBy::Unknown => {
                "The customer ended the conversation politely; who helped them cannot be told.".to_owned()
            }
            (ResolutionBasis::AnswerGiven, _) => {
                "The customer accepted what they were told, but not everything they asked for was done."
                    .to_owned()
            }
            (ResolutionBasis::SilenceOnly, _) => {
                "An answer was given and the customer did not write again; nothing shows that it helped."
                    .to_owned()
            }
            (ResolutionBasis::Escalated, ResolutionStatus::NotResolved) => {
                "The conversation was to be passed on to a human, and its end is not in the transcript."
                    .to_owned()
            }
            (ResolutionBasis::Escalated, _) => {
                "A human took over, and the customer did not say how it ended.".to_owned()
            }
            (ResolutionBasis::CustomerRejected, _) => {
                "The customer left without a solution, in their own words.".to_owned()
            }
            (ResolutionBasis::NoAnswer, _) => {
                "The customer got no answer that could solve the issue.".to_owned()
            }
        };
        match self.caveat(verdict) {
            Some(second) => format!("{first} {second}"),
            None => first,
        }
    }

    fn caveat(&self, verdict: &Verdict) -> Option<&'static str> {
        if verdict.human_work_in_notes {
            return Some("A human wrote internal comments, and nothing that the customer saw.");
        }
        if self.involvement == AiInvolvement::NoAi {
            return Some("No AI agent wrote to the customer.");
        }
        self.reliability.flags.iter().find_map(|flag| match flag {
            Flag::PossiblePromptInjection => Some("A message talks to the evaluator and was not believed."),
            Flag::UnsupportedLanguage => Some("The language is not covered, so a person should look."),
            Flag::MixedAuthors => Some("Some items have several authors and prove nothing."),
            Flag::TruncatedTranscript => Some("The transcript seems to be incomplete."),
            Flag::ShortConversation
            | Flag::NoAiMessages
            | Flag::NoCustomerMessages
            | Flag::JudgeDisagrees => None,
        })
    }
}

/// The sentence for a signal; `None` for signals that the first sentence covers.
fn second_sentence(code: &str) -> Option<&'static str> {
    match code {
        "CUSTOMER_REPEATED" => Some("They had to repeat themselves."),
        "AGENT_MISSED_THE_POINT" => Some("Answers missed the point."),
        "AGENT_REPEATED_ITSELF" => Some("The answers repeat themselves."),
        "ACTION_CLAIMED" => Some("Something was said to be done that was not."),
        "AGENT_REFUSED" => Some("The answers refuse without an alternative."),
        "AGENT_DECLINED" => Some("The request was declined with a reason."),
        "AGENT_PROMISED" => Some("The answers promise something for later."),
        "AGENT_HANDED_OVER" => Some("The issue was passed on."),
        "ACTION_COMPLETED" => Some("Something was carried out for them."),
        "AGENT_ANSWERED" => Some("They got a fitting answer."),
        "REOPENED" => Some("They had come back after the issue seemed solved."),
        _ => None,
    }
}

/// A flaw of the handoff, as a clause.
fn flaw_clause(flaw: &HandoffFlaw) -> &'static str {
    match flaw.code {
        "HUMAN_REQUESTED_AGAIN" => "the customer had to ask more than once",
        "CUSTOMER_REPEATED" => "the customer had to repeat themselves",
        _ => "the customer had to wait",
    }
}

fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

fn join(parts: &[&str]) -> String {
    match parts.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}
