//! The scores, message by message, under rules that hold whatever the models say:
//!
//! - a complaint lowers resolution accuracy, a plain one to 2.5 at most; a confirmation raises it;
//! - an answer that neither helps nor carries anything out raises no score: claims that all is well and farewells are no
//!   help.
//!
//! So a conversation with one more message is compared with the same one without it. The lowest score is kept for the
//! customer who complains again and again, so that one more complaint still shows.

use super::Reader;
use super::acts::{Act, MessageActs};
use super::encoding::EncodedMessages;
use super::structure::{Unseen, facts};
use super::view::{Placed, messages_read};
use crate::transcript::{Role, Transcript};

/// The ends of the scale.
const LOWEST: f64 = 1.0;
const HIGHEST: f64 = 5.0;
/// What a complaint takes and a confirmation gives, at least, in points.
const STEP: f64 = 0.1;
/// Resolution accuracy at least, as long as the customer has not complained. Each complaint takes a [`STEP`] off.
const LOWEST_WITHOUT_COMPLAINT: f64 = 1.6;
/// From this probability on a message is taken for a complaint or a confirmation.
const TAKEN_FOR: f32 = 0.5;
/// From this probability on it is a plain complaint.
const PLAIN: f32 = 0.9;
/// Resolution accuracy at most behind a plain complaint.
const MOST_AFTER_PLAIN_COMPLAINT: f64 = 2.5;
/// A customer's message that shares more of its words with an earlier one says it again.
const SAID_AGAIN: f64 = 0.4;

/// The two scores that the rules hold for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scores {
    /// In points, 1–5.
    pub resolution_accuracy: f64,
    /// In points, 1–5.
    pub interaction_effort: f64,
}

/// What was come to behind a message.
#[derive(Debug, Clone, Copy)]
struct State {
    scores: Scores,
    /// Resolution accuracy is not below this.
    lowest: f64,
}

/// What the customer's message or an answer may do to the scores.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Effect {
    /// Lowers resolution accuracy, and to this at most.
    Lowers {
        most: f64,
    },
    Raises,
    /// Raises nothing.
    NoHelp,
    /// Changes nothing: nothing was read of it.
    Nothing,
    Any,
}

/// Goes through a conversation.
pub(super) struct Steps<'s, 'a> {
    pub reader: &'s Reader,
    pub transcript: &'s Transcript<'a>,
    pub encoded: &'s EncodedMessages,
}

impl Steps<'_, '_> {
    /// The scores at the end.
    pub(super) fn to_the_end(&self) -> Scores {
        let items = &self.transcript.items;
        let is_customer = |index: usize| {
            items.get(index).is_some_and(|item| item.role == Role::Customer && !item.is_injected)
        };
        let mut state: Option<State> = None;
        let mut index = 0;
        while index < items.len() {
            let start = index;
            index += 1;
            // A step ends behind each message of the customer, and before it.
            while index < items.len() && !is_customer(start) && !is_customer(index) {
                index += 1;
            }
            state = self.step(state, start, index);
        }
        state.map_or_else(
            || self.plain(&messages_read(self.transcript, items.len()), LOWEST_WITHOUT_COMPLAINT),
            |state| state.scores,
        )
    }

    /// The state behind the items up to `end`; none as long as nothing was read.
    fn step(&self, before: Option<State>, start: usize, end: usize) -> Option<State> {
        let read = messages_read(self.transcript, end);
        if read.is_empty() {
            return before;
        }
        let Some(State { scores: before, lowest }) = before else {
            let scores = self.plain(&read, LOWEST_WITHOUT_COMPLAINT);
            return Some(State { scores, lowest: LOWEST_WITHOUT_COMPLAINT });
        };
        let effect = self.effect(&read, start);
        let lowest =
            if matches!(effect, Effect::Lowers { .. }) { (lowest - STEP).max(LOWEST) } else { lowest };
        let Scores { resolution_accuracy: accuracy, interaction_effort: effort } = self.plain(&read, lowest);
        let (accuracy, effort) = match effect {
            Effect::Lowers { most } => {
                let fallen = accuracy.min(before.resolution_accuracy - STEP).min(most);
                (fallen.max(lowest), effort)
            }
            Effect::Raises => (accuracy.max(before.resolution_accuracy + STEP).min(HIGHEST), effort),
            Effect::NoHelp => {
                (accuracy.min(before.resolution_accuracy), effort.min(before.interaction_effort))
            }
            Effect::Nothing => return Some(State { scores: before, lowest }),
            Effect::Any => (accuracy, effort),
        };
        Some(State { scores: Scores { resolution_accuracy: accuracy, interaction_effort: effort }, lowest })
    }

    /// What the models say of the messages, resolution accuracy not below `lowest`.
    fn plain(&self, read: &[Placed], lowest: f64) -> Scores {
        let facts = facts(self.transcript, read, Unseen::IsLeftOut);
        let outputs = self.reader.outputs(read, self.encoded, &facts);
        let at = |index: usize, least| outputs.get(index).copied().unwrap_or(LOWEST).clamp(least, HIGHEST);
        Scores { resolution_accuracy: at(0, lowest), interaction_effort: at(1, LOWEST) }
    }

    /// What the messages from `start` on may do.
    fn effect(&self, read: &[Placed], start: usize) -> Effect {
        let acts = self.encoded.acts(read);
        let new: Vec<(&Placed, &MessageActs)> =
            read.iter().zip(&acts).filter(|(placed, _)| placed.item >= start).collect();
        let Some((first, said)) = new.first() else { return Effect::Nothing };
        if first.role == Role::Customer {
            return self.of_customer(first.item, said);
        }
        let helps = |acts: &MessageActs| {
            acts.has_any(&[Act::Answer, Act::CarryOut]) && !acts.has_any(&[Act::Close, Act::ClaimFalsely])
        };
        let may_help = |(placed, acts): &(&Placed, &MessageActs)| placed.role != Role::Ai || helps(acts);
        if new.iter().any(may_help) { Effect::Any } else { Effect::NoHelp }
    }

    fn of_customer(&self, item: usize, said: &MessageActs) -> Effect {
        let complaint = said.strongest(&Act::COMPLAINTS).map_or(0.0, |(_, probability)| probability);
        let confirms = said.probability(Act::Confirm);
        let said_again = self.transcript.likeness(item) > SAID_AGAIN && confirms < TAKEN_FOR;
        if said_again || self.transcript.says_first_request_again(item) {
            return Effect::Lowers { most: HIGHEST };
        }
        match (complaint >= TAKEN_FOR, confirms >= TAKEN_FOR) {
            (true, _) if complaint >= confirms => {
                let most = if complaint >= PLAIN { MOST_AFTER_PLAIN_COMPLAINT } else { HIGHEST };
                Effect::Lowers { most }
            }
            (_, true) => Effect::Raises,
            _ => Effect::Any,
        }
    }
}
