//! Rules that hold whatever the weights say: floors for what the customer confirmed, ceilings for what they
//! rejected, were refused, or had to ask for in vain.

use assay_contracts::evaluation::HandoffState;

use super::ModelledDimension;
use crate::answer::{says_nothing_of_use, tells_of_a_failed_action, tells_of_a_finished_action};
use crate::customer::{CustomerCourse, EndState};
use crate::effort::EffortFindings;
use crate::handoff::HandoffFindings;
use crate::lexicon::Group;
use crate::transcript::{Item, Transcript};

/// An answer of fewer words says nothing.
pub(crate) const SUBSTANTIVE_WORDS: u32 = 3;
/// An end with trouble, a demand or a reproach is so much worse than one with a mere question.
const OBJECTION: f64 = 0.4;
/// So many equal answers make a loop.
const LOOP: usize = 2;

/// What each complaint and turn moves a score, in points: one tenth is the smallest change to be seen.
const STEP: f64 = 0.1;
/// Beyond so many one more changes nothing: it could not be seen at the end of the scale.
const MOST_STEPS: u32 = 12;

/// A floor or a ceiling that a rule sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// Code of the signal.
    pub code: &'static str,
    /// The item that shows why.
    pub item: Option<usize>,
    bound: Bound,
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Limit {
    /// The value within the limit.
    pub(crate) fn apply(&self, value: f64) -> f64 {
        match self.bound {
            Bound::AtLeast(floor) => value.max(floor),
            Bound::AtMost(ceiling) => value.min(ceiling),
        }
    }
}

/// What a guard moved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Adjustment {
    /// Code of the signal.
    pub code: &'static str,
    /// Points by which the score was moved.
    pub effect: f64,
    /// The item that shows why.
    pub item: Option<usize>,
}

/// What guards look at.
pub(crate) struct Guards<'t, 'a> {
    pub transcript: &'t Transcript<'a>,
    pub course: &'t CustomerCourse,
    pub effort: &'t EffortFindings,
    pub handoff: &'t HandoffFindings,
}

impl Guards<'_, '_> {
    /// The limits of a dimension: floors first, so that a ceiling always wins.
    pub(crate) fn limits(&self, dimension: ModelledDimension) -> Vec<Limit> {
        let mut limits = Vec::new();
        match dimension {
            ModelledDimension::ResolutionAccuracy => {
                limits.extend(self.content_floor());
                limits.extend(self.open_ceiling(3.5));
                limits.extend(self.complaint_ceiling(2.7));
                limits.extend(self.refusal_ceiling());
                limits.extend(self.loop_ceiling(2.1));
                limits.extend(self.missing_human_ceiling(2.5));
                limits.extend(self.silence_ceiling());
            }
            ModelledDimension::InteractionEffort => {
                limits.extend(self.ease_floor());
                limits.extend(self.open_ceiling(3.9));
                limits.extend(self.complaint_ceiling(3.2));
                limits.extend(self.loop_ceiling(1.9));
                limits.extend(self.missing_human_ceiling(2.0));
                limits.extend(self.silence_ceiling());
            }
        }
        limits
    }

    /// Complaints of every kind, in the whole conversation.
    fn complaints(&self) -> u32 {
        self.course.complaints()
    }

    /// What every complaint and every further turn without a solution takes off, and every content turn at the end
    /// adds, whatever the models and the limits say: one more must always show. Interaction effort counts turns by
    /// its features.
    pub(crate) fn steps(&self, dimension: ModelledDimension) -> Adjustment {
        if dimension == ModelledDimension::InteractionEffort {
            return Adjustment { code: "ISSUE_LEFT_OPEN", effect: 0.0, item: None };
        }
        let count = |count: u32| f64::from(count.min(MOST_STEPS));
        let worse = count(self.complaints() + self.course.unsettled);
        let better = count(self.course.content_streak);
        let code = if worse > better { "ISSUE_LEFT_OPEN" } else { "CUSTOMER_THANKED" };
        Adjustment { code, effect: STEP * (better - worse), item: self.decided_by() }
    }

    fn decided_by(&self) -> Option<usize> {
        self.course.decided_by.map(|(item, _)| item)
    }

    /// A customer who never complained and says that it is solved was helped, unless the last attempt failed.
    fn content_floor(&self) -> Option<Limit> {
        let confirmed = self.course.end == EndState::Confirmed;
        // Praise and thanks for a finished action confirm it by courtesy; the models know how much that is worth.
        let phrase = self.course.decided_by.and_then(|(_, phrase)| phrase);
        let explicit = phrase.is_none_or(|found| !matches!(found.group, Group::Praise | Group::Approval));
        let clean = explicit && self.complaints() == 0 && !ends_in_failure(self.transcript);
        (confirmed && clean).then(|| Limit {
            code: "CUSTOMER_CONFIRMED",
            item: self.decided_by(),
            bound: Bound::AtLeast(3.3),
        })
    }

    /// A content customer who wrote at most three times and was asked next to nothing had little to do.
    fn ease_floor(&self) -> Option<Limit> {
        let effort = self.effort.effort;
        let easy = self.course.end.is_content()
            && self.complaints() == 0
            && effort.customer_turns <= 3
            && effort.repeated_information == 0
            && effort.clarifications <= 1;
        easy.then_some(Limit { code: "LITTLE_EFFORT", item: None, bound: Bound::AtLeast(4.0) })
    }

    /// A customer who answered the answer without being content has not been helped yet.
    fn open_ceiling(&self, ceiling: f64) -> Option<Limit> {
        let open = self.course.end == EndState::Open && self.course.unsettled > 0;
        let ceiling = if self.course.ends_objecting() { ceiling - OBJECTION } else { ceiling };
        let item = self.transcript.customer.last().copied();
        open.then_some(Limit { code: "ISSUE_LEFT_OPEN", item, bound: Bound::AtMost(ceiling) })
    }

    /// A customer who leaves with a complaint was not helped; every complaint weighs.
    fn complaint_ceiling(&self, first: f64) -> Option<Limit> {
        let code = match self.course.end {
            EndState::Rejected => "CUSTOMER_REJECTED",
            EndState::Repeated => "CUSTOMER_REPEATED",
            EndState::GaveUp => "CUSTOMER_GAVE_UP",
            EndState::AskedForHuman => "HUMAN_REQUESTED",
            _ => return None,
        };
        let routed = self.course.end == EndState::AskedForHuman
            && self.handoff.handoff.state == HandoffState::Completed;
        // Saying it again is a weaker complaint than saying that it is wrong.
        let relief = match self.course.end {
            _ if routed => 1.0,
            EndState::Repeated | EndState::GaveUp => 0.5,
            _ => 0.0,
        };
        Some(Limit { code, item: self.decided_by(), bound: Bound::AtMost(first + relief) })
    }

    /// Refusals alone solve nothing that the customer does not accept.
    fn refusal_ceiling(&self) -> Option<Limit> {
        let heard: Vec<&Item<'_>> = self.transcript.heard_items().collect();
        let all_refuse = !heard.is_empty()
            && heard.iter().all(|item| item.has(Group::Refusal) && !tells_of_a_finished_action(item));
        (all_refuse && !self.course.end.is_content()).then_some(Limit {
            code: "AGENT_REFUSED",
            item: self.transcript.answers.first().copied(),
            bound: Bound::AtMost(if self.course.unsettled == 0 { 2.5 } else { 2.8 }),
        })
    }

    fn loop_ceiling(&self, ceiling: f64) -> Option<Limit> {
        let looped = self.effort.loops.len() >= LOOP && !self.course.end.is_content();
        looped.then(|| Limit {
            code: "AGENT_REPEATED_ITSELF",
            item: self.effort.loops.last().copied(),
            bound: Bound::AtMost(ceiling),
        })
    }

    /// A person who was asked for and did not come weighs more than one who was only promised.
    fn missing_human_ceiling(&self, ignored: f64) -> Option<Limit> {
        let missing = self.handoff.handoff.state == HandoffState::RequestedNotCompleted
            && self.course.end != EndState::Confirmed;
        let (code, ceiling) = if self.handoff.customer_asked() {
            ("HUMAN_REQUEST_IGNORED", ignored)
        } else {
            ("PROMISED_HUMAN_MISSING", ignored + 0.5)
        };
        let item = self.handoff.opened_by.map(|(item, _)| item);
        missing.then_some(Limit { code, item, bound: Bound::AtMost(ceiling) })
    }

    /// Whoever says nothing helps nobody; a word or two hardly does.
    fn silence_ceiling(&self) -> Option<Limit> {
        let words: u32 = self.transcript.heard_items().map(|item| item.reading.words).sum();
        let all_empty = self.transcript.heard > 0 && self.transcript.heard_items().all(says_nothing_of_use);
        let ceiling = match words {
            0 => 1.2,
            _ if words < SUBSTANTIVE_WORDS || all_empty => 2.4,
            _ => return None,
        };
        let item = self.transcript.answers.first().copied();
        Some(Limit { code: "NO_SUBSTANTIVE_ANSWER", item, bound: Bound::AtMost(ceiling) })
    }
}

/// Whether the last answer that the customer reacted to tells of a failure.
fn ends_in_failure(transcript: &Transcript<'_>) -> bool {
    let mut heard = transcript.answers.iter().take(transcript.heard);
    heard.next_back().is_some_and(|answer| tells_of_a_failed_action(transcript, *answer))
}
