//! The scores, message by message, under rules that hold whatever the models say:
//!
//! - a complaint lowers resolution accuracy, a confirmation raises it;
//! - an answer that neither helps nor carries anything out raises no score: claims that all is well and farewells are no
//!   help.
//!
//! So a conversation with one more message is compared with the same one without it.

use super::acts::{Act, MessageActs};
use super::structure::{Unseen, facts};
use super::view::{Placed, messages_read};
use super::{ActsOfMessages, Reader};
use crate::transcript::{Role, Transcript};

/// What a complaint takes and a confirmation gives, at least, in points.
const STEP: f64 = 0.1;
/// From this probability on a message is taken for a complaint or a confirmation.
const TAKEN_FOR: f32 = 0.3;
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

/// What the customer's message or an answer may do to the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Lowers,
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
    pub acts: &'s ActsOfMessages,
}

impl Steps<'_, '_> {
    /// The scores at the end.
    pub(super) fn to_the_end(&self) -> Scores {
        let items = &self.transcript.items;
        let mut scores: Option<Scores> = None;
        let mut index = 0;
        while index < items.len() {
            let is_customer = |index: usize| {
                items.get(index).is_some_and(|item| item.role == Role::Customer && !item.is_injected)
            };
            let start = index;
            index += 1;
            // A step ends behind each message of the customer, and before it.
            while index < items.len() && !is_customer(start) && !is_customer(index) {
                index += 1;
            }
            scores = Some(self.step(scores, start, index));
        }
        scores.unwrap_or_else(|| self.plain(&messages_read(self.transcript, items.len())))
    }

    fn step(&self, before: Option<Scores>, start: usize, end: usize) -> Scores {
        let read = messages_read(self.transcript, end);
        let plain = self.plain(&read);
        let Some(before) = before else { return plain };
        let limit = |value: f64| value.clamp(1.0, 5.0);
        let Scores { resolution_accuracy: accuracy, interaction_effort: effort } = plain;
        let (accuracy, effort) = match self.effect(&read, start) {
            Effect::Lowers => (accuracy.min(before.resolution_accuracy - STEP), effort),
            Effect::Raises => (accuracy.max(before.resolution_accuracy + STEP), effort),
            Effect::NoHelp => (accuracy.min(before.resolution_accuracy), effort.min(before.interaction_effort)),
            Effect::Nothing => return before,
            Effect::Any => (accuracy, effort),
        };
        Scores { resolution_accuracy: limit(accuracy), interaction_effort: limit(effort) }
    }

    /// What the models say of the messages.
    fn plain(&self, read: &[Placed]) -> Scores {
        let facts = facts(self.transcript, read, Unseen::IsLeftOut);
        let outputs = self.reader.outputs(read, &self.acts.of_read(read), &facts);
        let at = |index: usize| outputs.get(index).copied().unwrap_or(1.0).clamp(1.0, 5.0);
        Scores { resolution_accuracy: at(0), interaction_effort: at(1) }
    }

    /// What the messages from `start` on may do.
    fn effect(&self, read: &[Placed], start: usize) -> Effect {
        let acts = self.acts.of_read(read);
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
        if self.transcript.likeness(item) > SAID_AGAIN && confirms < TAKEN_FOR {
            return Effect::Lowers;
        }
        match (complaint >= TAKEN_FOR, confirms >= TAKEN_FOR) {
            (true, _) if complaint >= confirms => Effect::Lowers,
            (_, true) => Effect::Raises,
            _ => Effect::Any,
        }
    }
}
