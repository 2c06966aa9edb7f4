//! The customer's state over the conversation: the reaction in each message, and the final state.

use crate::reader::{Act, MessageActs, Reading};
use crate::transcript::{Role, Transcript};

/// The customer's final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The customer did not write.
    Absent,
    /// Said or showed that it is solved.
    Confirmed,
    /// Thanked.
    Thanked,
    /// Accepted the answer.
    Accepted,
    /// The last message asks or tells something.
    Open,
    /// Is not convinced.
    Doubting,
    /// Repeated an earlier message.
    Repeated,
    /// Said that it is not solved.
    Rejected,
    /// Asked for a human.
    AskedForHuman,
    /// Left without a solution.
    GaveUp,
}

impl EndState {
    /// Whether the customer left unsatisfied.
    pub(crate) const fn is_unhappy(self) -> bool {
        matches!(self, Self::Repeated | Self::Rejected | Self::AskedForHuman | Self::GaveUp)
    }

    /// Whether the customer left content.
    pub(crate) const fn is_satisfied(self) -> bool {
        matches!(self, Self::Confirmed | Self::Thanked)
    }

    /// The state after one message: of several complaints the most probable one decides, of the other acts the first in this
    /// order. [`Self::Open`] if the message has none of them.
    fn of(acts: &MessageActs) -> Self {
        let confirm = acts.probability(Act::Confirm);
        match acts.strongest(Act::COMPLAINTS) {
            Some((act, probability)) if acts.has(act) && probability > confirm => Self::after_complaint(act),
            _ if acts.has(Act::Confirm) => Self::Confirmed,
            _ if acts.has(Act::Doubt) => Self::Doubting,
            _ if acts.has(Act::Accept) => Self::Accepted,
            _ if acts.has(Act::Thank) => Self::Thanked,
            _ => Self::Open,
        }
    }

    const fn after_complaint(complaint: Act) -> Self {
        match complaint {
            Act::Reject | Act::Irony | Act::Return => Self::Rejected,
            Act::RequestHuman => Self::AskedForHuman,
            Act::GiveUp => Self::GaveUp,
            Act::Repeat => Self::Repeated,
            _ => Self::Open,
        }
    }
}

/// The customer's state over the conversation.
#[derive(Debug)]
pub(crate) struct CustomerCourse {
    /// Final state.
    pub end: EndState,
    /// The item that decided the final state.
    pub decided_by: Option<usize>,
    /// Whether the customer came back, or complained, after the issue seemed solved.
    pub reopened: bool,
}

impl CustomerCourse {
    /// Follows the customer from the first message to the last. Messages with no answer between them are one turn:
    /// only a confirmation cancels a complaint of the same turn. Prompt injections are ignored.
    pub(crate) fn of(transcript: &Transcript<'_>, reading: &Reading) -> Self {
        let mut course = Self { end: EndState::Absent, decided_by: None, reopened: false };
        let mut same_turn = false;
        for (index, item) in transcript.items.iter().enumerate() {
            if item.role.ends_customer_turn() {
                same_turn = false;
            }
            if item.role != Role::Customer || item.is_injection {
                continue;
            }
            let acts = reading.acts(index);
            let next = EndState::of(&acts);
            course.reopened |= acts.has(Act::Return) || course.end.is_satisfied() && next.is_unhappy();
            let complaint_stands =
                same_turn && course.end.is_unhappy() && !next.is_unhappy() && next != EndState::Confirmed;
            let confirmation_stands =
                course.end == EndState::Confirmed && matches!(next, EndState::Thanked | EndState::Accepted);
            let is_addition = same_turn && next == EndState::Open && course.end != EndState::Absent;
            if !complaint_stands && !confirmation_stands && !is_addition {
                course.end = next;
                course.decided_by = Some(index);
            }
            same_turn = true;
        }
        course
    }
}
