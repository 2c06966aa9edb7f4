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
    /// Said the same again.
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
    pub(crate) const fn is_content(self) -> bool {
        matches!(self, Self::Confirmed | Self::Thanked)
    }

    /// The state that follows from an act. Among complaints the most probable one decides, among the others the first likely
    /// one.
    const DECIDING: [(Act, Self); 9] = [
        (Act::Reject, Self::Rejected),
        (Act::Irony, Self::Rejected),
        (Act::Return, Self::Rejected),
        (Act::AskPerson, Self::AskedForHuman),
        (Act::GiveUp, Self::GaveUp),
        (Act::Repeat, Self::Repeated),
        (Act::Confirm, Self::Confirmed),
        (Act::Doubt, Self::Doubting),
        (Act::Accept, Self::Accepted),
    ];

    /// The state after one message; `None` if the message does not show one.
    fn of(acts: &crate::reader::MessageActs) -> Option<(Self, Act)> {
        let complaint = acts.strongest(&Act::COMPLAINTS);
        let confirm = acts.probability(Act::Confirm);
        let decided = complaint.filter(|(act, probability)| acts.has(*act) && *probability > confirm);
        if let Some((act, _)) = decided {
            let state = Self::DECIDING.iter().find(|(deciding, _)| *deciding == act);
            return state.map(|(_, state)| (*state, act));
        }
        for (act, state) in Self::DECIDING {
            if matches!(act, Act::Confirm | Act::Doubt | Act::Accept) && acts.has(act) {
                return Some((state, act));
            }
        }
        if acts.has(Act::Thank) {
            return Some((Self::Thanked, Act::Thank));
        }
        acts.has_any(&[Act::Ask, Act::Tell]).then_some((Self::Open, Act::Ask))
    }
}

/// The customer's state over the conversation.
#[derive(Debug)]
pub(crate) struct CustomerCourse {
    /// Final state.
    pub end: EndState,
    /// The item that decided the final state.
    pub decided_by: Option<usize>,
    /// Whether the customer returned after being content.
    pub reopened: bool,
}

impl CustomerCourse {
    /// Follows the customer from the first message to the last. Messages with no answer between them are one turn:
    /// courtesy does not cancel a complaint of the same turn. Prompt injections are ignored.
    pub(crate) fn of(transcript: &Transcript<'_>, reading: &Reading) -> Self {
        let mut course = Self { end: EndState::Absent, decided_by: None, reopened: false };
        let mut same_turn = false;
        for (index, item) in transcript.items.iter().enumerate() {
            if item.role.speaks_to_customer() {
                same_turn = false;
            }
            if item.role != Role::Customer || item.is_injected {
                continue;
            }
            let acts = reading.acts(index);
            let next = EndState::of(&acts).map_or(EndState::Open, |(state, _)| state);
            course.reopened |= acts.has(Act::Return) || course.end.is_content() && next.is_unhappy();
            let stands =
                same_turn && course.end.is_unhappy() && !next.is_unhappy() && next != EndState::Confirmed;
            let courtesy = course.end == EndState::Confirmed
                && matches!(next, EndState::Thanked | EndState::Accepted)
                || same_turn && next == EndState::Open && course.end != EndState::Absent;
            if !stands && !courtesy {
                course.end = next;
                course.decided_by = Some(index);
            }
            same_turn = true;
        }
        course
    }
}
