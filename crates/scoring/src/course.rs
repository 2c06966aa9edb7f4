//! The customer's state over the conversation: the reaction in each message, and the final state.

use crate::reader::{Act, Reading};
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

    /// The state that follows from an act. Of several complaints the most probable one decides, of the other acts the
    /// first likely one.
    const DECIDING: [(Act, Self); 9] = [
        (Act::Reject, Self::Rejected),
        (Act::Irony, Self::Rejected),
        (Act::Return, Self::Rejected),
        (Act::RequestHuman, Self::AskedForHuman),
        (Act::GiveUp, Self::GaveUp),
        (Act::Repeat, Self::Repeated),
        (Act::Confirm, Self::Confirmed),
        (Act::Doubt, Self::Doubting),
        (Act::Accept, Self::Accepted),
    ];

    /// The state after one message; [`Self::Open`] if the message shows no other.
    fn of(acts: &crate::reader::MessageActs) -> Self {
        let complaint = acts.strongest(Act::COMPLAINTS);
        let confirm = acts.probability(Act::Confirm);
        let decided = complaint.filter(|(act, probability)| acts.has(*act) && *probability > confirm);
        if let Some((act, _)) = decided {
            let state = Self::DECIDING.iter().find(|(deciding, _)| *deciding == act);
            return state.map_or(Self::Open, |(_, state)| *state);
        }
        for (act, state) in Self::DECIDING {
            if matches!(act, Act::Confirm | Act::Doubt | Act::Accept) && acts.has(act) {
                return state;
            }
        }
        if acts.has(Act::Thank) { Self::Thanked } else { Self::Open }
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
