//! One or two plain sentences for each verdict, as a customer-support manager would say them.

use assay_contracts::evaluation::{
    AiInvolvement, Effort, Flag, HandoffState, ResolutionBasis, ResolutionStatus, ResolvedBy,
};

use crate::audit::Verdict;
use crate::customer::{CustomerCourse, EndState, Reaction};
use crate::doubt::Doubts;
use crate::effort::EffortFindings;
use crate::handoff::{Deduction, HandoffFindings};
use crate::model::Scored;

/// Puts findings into words.
pub(crate) struct Narrator<'t> {
    pub course: &'t CustomerCourse,
    pub effort: &'t EffortFindings,
    pub handoff: &'t HandoffFindings,
    pub doubts: &'t Doubts,
    pub involvement: AiInvolvement,
}

impl Narrator<'_> {
    /// Why resolution accuracy is what it is.
    pub(crate) fn resolution_accuracy(&self, scored: &Scored) -> String {
        let ending = match self.course.end {
            EndState::Absent => "The customer did not write.",
            EndState::Confirmed => "The customer confirmed that the issue was solved.",
            EndState::Thanked => "The customer thanked for the answer at the end.",
            EndState::Closed => {
                "The customer ended the conversation without saying whether the issue was solved."
            }
            EndState::Accepted => {
                "The customer accepted the last answer without saying that the issue was solved."
            }
            EndState::Open => {
                "The customer's last message asks or tells something and does not say how it ended."
            }
            EndState::Repeated => "The customer had to say the same thing again at the end.",
            EndState::Rejected => "The customer said at the end that the issue was not solved.",
            EndState::AskedForHuman => "The customer asked for a human at the end.",
            EndState::GaveUp => "The customer gave up.",
        };
        match self.second_sentence(scored) {
            Some(second) => format!("{ending} {second}"),
            None => ending.to_owned(),
        }
    }

    /// What else weighed most, if it is not the ending itself.
    fn second_sentence(&self, scored: &Scored) -> Option<String> {
        let guard = scored.adjustments.iter().map(|adjustment| adjustment.code).find_map(guard_sentence);
        if let Some(sentence) = guard {
            return Some(sentence.to_owned());
        }
        let rejected = self.course.count(Reaction::Rejects);
        if rejected > 0 && self.course.end.is_content() {
            return Some(format!(
                "Before that they had rejected {}.",
                counted(rejected, "answer", "answers")
            ));
        }
        if rejected > 1 && self.course.end == EndState::Rejected {
            return Some(format!("They rejected {}.", counted(rejected, "answer", "answers")));
        }
        let strongest = scored
            .contributions
            .iter()
            .filter(|(_, effect)| *effect <= -0.25)
            .filter_map(|(code, effect)| drag_sentence(code).map(|sentence| (sentence, *effect)))
            .min_by(|one, other| one.1.total_cmp(&other.1));
        strongest.map(|(sentence, _)| sentence.to_owned())
    }

    /// Why interaction effort is what it is.
    pub(crate) fn interaction_effort(&self, scored: &Scored) -> String {
        let Effort { customer_turns, repeated_information, clarifications } = self.effort.effort;
        let turns = times(customer_turns);
        let mut burdens = Vec::new();
        if repeated_information > 0 {
            burdens.push(format!("repeated information {}", times(repeated_information)));
        }
        if clarifications > 0 {
            burdens.push(format!("was asked back {}", times(clarifications)));
        }
        let first = if burdens.is_empty() {
            format!("The customer wrote {turns} and neither repeated anything nor was asked back.")
        } else {
            format!("The customer wrote {turns} and {}.", burdens.join(" and "))
        };
        let guard = scored.adjustments.iter().map(|adjustment| adjustment.code).find_map(guard_sentence);
        guard.map_or(first.clone(), |second| format!("{first} {second}"))
    }

    /// Why handoff smoothness is what it is.
    pub(crate) fn handoff_smoothness(&self) -> String {
        match self.handoff.handoff.state {
            HandoffState::None => "No handoff to a human was needed.".to_owned(),
            HandoffState::OfferedNotTaken => {
                "A human was offered and the customer did not take the offer.".to_owned()
            }
            HandoffState::RequestedNotCompleted if self.handoff.customer_asked() => {
                "The customer asked for a human and none came.".to_owned()
            }
            HandoffState::RequestedNotCompleted => "A human was promised and none came.".to_owned(),
            HandoffState::Completed if self.handoff.deductions.is_empty() => {
                "A human took over without the customer having to ask or say anything twice.".to_owned()
            }
            HandoffState::Completed => {
                let mut faults: Vec<&str> = self.handoff.deductions.iter().map(fault).collect();
                faults.dedup();
                format!("A human took over, but {}.", join(&faults))
            }
        }
    }

    /// Why the audit says what it says.
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
            return Some("Internal comments show human work.");
        }
        if self.involvement == AiInvolvement::NoAi {
            return Some("No AI agent wrote to the customer.");
        }
        self.doubts.flags.iter().find_map(|flag| match flag {
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

fn guard_sentence(code: &str) -> Option<&'static str> {
    match code {
        "AGENT_REPEATED_ITSELF" => Some("The same answer was given again and again."),
        "HUMAN_REQUEST_IGNORED" => Some("Their request for a human was not met."),
        "PROMISED_HUMAN_MISSING" => Some("The human who was promised is not in the transcript."),
        "NO_SUBSTANTIVE_ANSWER" => Some("The answers say nothing."),
        "AGENT_REFUSED" => Some("The answers only refused."),
        _ => None,
    }
}

fn drag_sentence(code: &str) -> Option<&'static str> {
    match code {
        "CUSTOMER_FRUSTRATED" => Some("They showed frustration on the way."),
        "CUSTOMER_REPEATED" => Some("They had to repeat themselves."),
        "AGENT_APOLOGISED" => Some("The answers apologise, which goes with something having failed."),
        "AGENT_REFUSED" => Some("The answers refuse what was asked."),
        "AGENT_CONFUSED" => Some("The answering side misunderstood the request."),
        "AGENT_REPEATED_ITSELF" => Some("The answers repeat themselves."),
        "AGENT_HANDED_OVER" => Some("The issue was passed on."),
        "AGENT_PUT_OFF" => Some("The answers put them off instead of solving it."),
        "ACTION_FAILED" => Some("Something that was tried for them failed."),
        "CUSTOMER_ACCUSED" => Some("They reproached the company."),
        "CUSTOMER_PRESSED" => Some("They pressed for a solution."),
        "CUSTOMER_TRIED_ANOTHER" => Some("They had to ask for another one."),
        "ISSUE_LEFT_OPEN" => Some("Nothing they wrote since shows that it was solved."),
        "QUESTION_LEFT_OPEN" => Some("Their last question is open."),
        "CUSTOMER_WAITED" => Some("They were kept waiting."),
        "REOPENED" => Some("They had come back after they seemed content."),
        _ => None,
    }
}

fn fault(deduction: &Deduction) -> &'static str {
    match deduction.code {
        "HUMAN_REQUESTED_AGAIN" => "the customer had to ask more than once",
        "HUMAN_REQUEST_DEFLECTED" => "the AI agent put the request off first",
        "ASKED_AGAIN" => "the human asked for what had been given",
        "CUSTOMER_REPEATED" => "the customer had to repeat themselves",
        "WAITED_FOR_HUMAN" => "the customer had to wait",
        _ => "the customer was annoyed",
    }
}

fn counted(count: u32, one: &str, many: &str) -> String {
    match count {
        1 => format!("one {one}"),
        _ => format!("{count} {many}"),
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
