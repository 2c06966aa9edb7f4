//! The state in which the customer ends: what is worth most for telling whether they were helped.

use super::complaint::sarcasm;
use super::reaction::{Reacted, Reaction};
use crate::answer::tells_of_a_failed_action;
use crate::transcript::{Found, Transcript};

/// The customer's last word on the matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The customer did not write.
    Absent,
    /// Said that it is solved.
    Confirmed,
    /// Thanked.
    Thanked,
    /// Said goodbye.
    Closed,
    /// Said "ok".
    Accepted,
    /// Asked or told something last.
    Open,
    /// Said the same again.
    Repeated,
    /// Said that it is not solved.
    Rejected,
    /// Wanted a person.
    AskedForHuman,
    /// Left without a solution.
    GaveUp,
}

impl EndState {
    /// Every state.
    pub(crate) const ALL: [Self; 10] = [
        Self::Absent,
        Self::Confirmed,
        Self::Thanked,
        Self::Closed,
        Self::Accepted,
        Self::Open,
        Self::Repeated,
        Self::Rejected,
        Self::AskedForHuman,
        Self::GaveUp,
    ];

    /// Name in the weights file.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Confirmed => "confirmed",
            Self::Thanked => "thanked",
            Self::Closed => "closed",
            Self::Accepted => "accepted",
            Self::Open => "open",
            Self::Repeated => "repeated",
            Self::Rejected => "rejected",
            Self::AskedForHuman => "asked_for_human",
            Self::GaveUp => "gave_up",
        }
    }

    /// Whether the customer left unsatisfied, in their own words.
    pub(crate) const fn is_unhappy(self) -> bool {
        matches!(self, Self::Repeated | Self::Rejected | Self::AskedForHuman | Self::GaveUp)
    }

    /// Whether the customer left content, in their own words.
    pub(crate) const fn is_content(self) -> bool {
        matches!(self, Self::Confirmed | Self::Thanked)
    }

    /// The state after one more reaction; `same_turn` when nothing was answered since the one before.
    fn after(self, reaction: Reaction, same_turn: bool) -> Self {
        match reaction {
            Reaction::Confirms => Self::Confirmed,
            Reaction::Rejects => Self::Rejected,
            Reaction::AsksForHuman => Self::AskedForHuman,
            Reaction::GivesUp => Self::GaveUp,
            Reaction::SaysNothing => self,
            Reaction::Repeats if self.is_unhappy() => self,
            Reaction::Repeats => Self::Repeated,
            // Courtesy behind a complaint leaves the complaint standing.
            Reaction::Thanks | Reaction::Closes | Reaction::Accepts if same_turn && self != Self::Open => {
                self
            }
            Reaction::Thanks if self == Self::Confirmed => self,
            Reaction::Thanks => Self::Thanked,
            Reaction::Closes | Reaction::Accepts if self.is_content() => self,
            Reaction::Closes if matches!(self, Self::AskedForHuman | Self::GaveUp) => Self::GaveUp,
            Reaction::Closes => Self::Closed,
            Reaction::Accepts => Self::Accepted,
            Reaction::Continues if same_turn && self != Self::Absent => self,
            // "Thanks!" and then "spoke too soon …": the later message holds.
            Reaction::Objects if same_turn && self.is_unhappy() => self,
            Reaction::Continues | Reaction::Objects => Self::Open,
        }
    }
}

/// Reactions that complain.
const COMPLAINING: &[Reaction] =
    &[Reaction::Rejects, Reaction::AsksForHuman, Reaction::Repeats, Reaction::GivesUp];

/// The customer's way through the conversation.
#[derive(Debug)]
pub(crate) struct CustomerCourse {
    /// Reactions beside `transcript.customer`.
    pub reactions: Vec<Reacted>,
    /// How it ends.
    pub end: EndState,
    /// The item that brought the end about, and the phrase that shows it.
    pub decided_by: Option<(usize, Option<Found>)>,
    /// Whether the customer came back after they had been content.
    pub reopened: bool,
    /// Messages with sarcasm.
    pub sarcastic: u32,
    /// The last turns in a row that are content.
    pub content_streak: u32,
    /// Turns after the first answer since the customer was last content or said goodbye.
    pub unsettled: u32,
    /// The last turn with which the customer let things rest; the first of all where there is none. Whatever is
    /// answered later has not been accepted and speaks for nobody.
    pub settled_turn: usize,
    /// How many answers came before the end of `settled_turn`; the first answer of all always counts.
    pub settled_answers: usize,
}

impl CustomerCourse {
    /// The state of a customer whose contentment the last answer has overtaken.
    const WITHDRAWN: EndState = EndState::Open;

    /// Follows the customer from the first message to the last.
    pub(crate) fn of(transcript: &Transcript<'_>) -> Self {
        let reactions: Vec<Reacted> =
            (0..transcript.customer.len()).filter_map(|position| Reacted::of(transcript, position)).collect();
        let mut course = Self {
            reactions,
            end: EndState::Absent,
            decided_by: None,
            reopened: false,
            sarcastic: transcript.customer_items().filter(|item| sarcasm(item).is_some()).count() as u32,
            content_streak: 0,
            unsettled: 0,
            settled_turn: 0,
            settled_answers: 0,
        };
        let mut previous: Option<usize> = None;
        let items = transcript.customer.iter().copied().zip(transcript.turns.iter().copied());
        for ((index, turn), reacted) in items.zip(course.reactions.iter()) {
            let same_turn = previous == Some(turn);
            // What the customer was content with has failed since.
            if course.end.is_content() && failed_before(transcript, index) {
                course.end = Self::WITHDRAWN;
            }
            let next = course.end.after(reacted.reaction, same_turn);
            let objects = reacted.reaction == Reaction::Objects;
            course.reopened |= course.end.is_content() && (next.is_unhappy() || objects);
            if next != course.end || next.is_unhappy() {
                course.end = next;
                course.decided_by = Some((index, reacted.phrase));
            }
            previous = Some(turn);
        }
        course.follow_streaks(transcript);
        course
    }

    /// Counts with what the conversation ends. One turn may hold several messages: it does not matter in how many a
    /// customer tells something, but a complaint and a change of mood count wherever they stand.
    fn follow_streaks(&mut self, transcript: &Transcript<'_>) {
        let mut before: Option<(usize, Reaction)> = None;
        for (turn, reacted) in
            transcript.turns.iter().copied().zip(&self.reactions).filter(|(turn, _)| *turn > 0)
        {
            let (same_turn, last) = before.map_or((false, None), |(at, last)| (at == turn, Some(last)));
            match reacted.reaction {
                reaction if COMPLAINING.contains(&reaction) => {
                    self.content_streak = 0;
                    self.unsettled += 1;
                }
                Reaction::Objects => {
                    self.content_streak = 0;
                    self.unsettled += 1;
                }
                Reaction::Continues if !same_turn || last != Some(Reaction::Continues) => {
                    self.content_streak = 0;
                    self.unsettled += 1;
                }
                // Courtesy behind a complaint leaves the complaint standing.
                _ if same_turn && last.is_some_and(|last| COMPLAINING.contains(&last)) => continue,
                Reaction::Confirms | Reaction::Thanks => {
                    self.content_streak += 1;
                    self.unsettled = 0;
                    self.settled_turn = turn;
                }
                Reaction::Closes => {
                    self.unsettled = 0;
                    self.settled_turn = turn;
                }
                Reaction::Accepts => self.settled_turn = turn,
                _ => continue,
            }
            before = Some((turn, reacted.reaction));
        }
        let numbered = transcript.customer.iter().zip(&transcript.turns);
        let last_item = numbered.rev().find(|(_, turn)| **turn <= self.settled_turn).map(|(item, _)| *item);
        let before =
            transcript.answers.iter().filter(|answer| last_item.is_some_and(|item| **answer < item)).count();
        self.settled_answers = before.max(transcript.answers.len().min(1));
    }

    /// Whether the customer ends by objecting, in no words that the lists know for a rejection.
    pub(crate) fn ends_objecting(&self) -> bool {
        let last = self.reactions.iter().rev().find(|reacted| reacted.reaction != Reaction::SaysNothing);
        self.end == EndState::Open && last.is_some_and(|reacted| reacted.reaction == Reaction::Objects)
    }

    /// Complaints of every kind, in the whole conversation.
    pub(crate) fn complaints(&self) -> u32 {
        COMPLAINING.iter().map(|reaction| self.count(*reaction)).sum()
    }

    /// How many messages react this way.
    pub(crate) fn count(&self, reaction: Reaction) -> u32 {
        self.reactions.iter().filter(|reacted| reacted.reaction == reaction).count() as u32
    }
}

/// Whether the answer before the item tells of a failure.
fn failed_before(transcript: &Transcript<'_>, index: usize) -> bool {
    let answer = transcript.answers.iter().rev().find(|answer| **answer < index);
    answer.is_some_and(|answer| tells_of_a_failed_action(transcript, *answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn courtesy_behind_a_complaint_leaves_the_complaint_standing() {
        assert_eq!(EndState::Rejected.after(Reaction::Thanks, true), EndState::Rejected);
        assert_eq!(EndState::Rejected.after(Reaction::Thanks, false), EndState::Thanked);
        assert_eq!(EndState::AskedForHuman.after(Reaction::Closes, false), EndState::GaveUp);
        assert_eq!(EndState::Confirmed.after(Reaction::Closes, false), EndState::Confirmed);
        assert_eq!(EndState::Confirmed.after(Reaction::Rejects, false), EndState::Rejected);
    }
}
