//! Features of the models of step 2 of the [reader](super): which acts occurred, by whom, when, and in which order.

use super::acts::{Act, MessageActs};
use super::encoding::IMPRESSION_OUTPUTS;
use super::selection::SelectedMessage;
use super::structure::STRUCTURAL_FEATURES;
use crate::transcript::Role;

const ACTS: usize = Act::ALL.len();
/// Decay of the weight of an act per later message of the same side.
const DECAY: f64 = 0.6;
/// Decay of help per later answer.
const HELP_DECAY: f64 = 0.8;
/// Length of the vector: four final states of the customer, nine aggregates over the acts, the structural features, and the impression.
pub(crate) const FEATURES: usize = 4 + 9 * ACTS + STRUCTURAL_FEATURES + IMPRESSION_OUTPUTS;

/// The feature vector, in a fixed order; `acts` has one entry for each message of `selection`.
pub(super) fn features(
    selection: &[SelectedMessage],
    acts: &[MessageActs],
    structure: &[f32; STRUCTURAL_FEATURES],
    impression: &[f32],
) -> Vec<f32> {
    let of_role = |keep: fn(Role) -> bool| -> Vec<usize> {
        (0..selection.len())
            .filter(|at| selection.get(*at).is_some_and(|selected| keep(selected.role)))
            .collect()
    };
    let customer = of_role(|role| role == Role::Customer);
    // Items of several authors count as answers here, unlike in `Transcript::answers`.
    let answers = of_role(Role::ends_customer_turn);
    let last_of_customer = customer.last().copied();
    // The customer has seen the answers before their own last message.
    let is_seen = |answer: &&usize| last_of_customer.is_some_and(|last| **answer < last);
    let last_seen_answer = answers.iter().rfind(is_seen).copied();
    let unseen_answers: Vec<usize> = answers.iter().filter(|answer| !is_seen(answer)).copied().collect();
    // The customer's messages since the last answer that they have seen.
    let final_turn: Vec<usize> =
        customer.iter().filter(|at| last_seen_answer.is_none_or(|answer| **at > answer)).copied().collect();
    let all: Vec<usize> = (0..selection.len()).collect();
    let second_last_of_customer: Vec<usize> = customer.iter().rev().skip(1).take(1).copied().collect();
    let aggregates = Aggregates { acts };
    let mut numbers: Vec<f64> = Vec::with_capacity(FEATURES);
    numbers.extend(final_states(acts, &customer, &answers));
    numbers.extend(aggregates.decayed(&customer));
    numbers.extend(aggregates.decayed(&answers));
    numbers.extend(aggregates.total(&all));
    numbers.extend(aggregates.highest(&all));
    numbers.extend(aggregates.total(last_of_customer.as_slice()));
    numbers.extend(aggregates.total(&second_last_of_customer));
    numbers.extend(aggregates.total(last_seen_answer.as_slice()));
    numbers.extend(aggregates.total(&unseen_answers));
    numbers.extend(aggregates.highest(&final_turn));
    let mut features: Vec<f32> = numbers.into_iter().map(|number| number as f32).collect();
    features.extend(structure);
    features.extend(impression);
    features
}

/// How content, courteous, unhappy and helped the customer is at the end, each 0–1.
fn final_states(acts: &[MessageActs], customer: &[usize], answers: &[usize]) -> [f64; 4] {
    let probability = |at: usize, act: Act| acts.get(at).map_or(0.0, |acts| f64::from(acts.probability(act)));
    let (mut content, mut courteous, mut unhappy, mut helped) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for at in customer.iter().copied() {
        let confirms = probability(at, Act::Confirm);
        let complains = Act::COMPLAINTS.iter().map(|act| probability(at, *act)).fold(0.0, f64::max);
        content = confirms.max(content * (1.0 - complains));
        let courtesy = probability(at, Act::Thank).max(probability(at, Act::Accept));
        courteous = courtesy.max(courteous * (1.0 - complains));
        unhappy = complains.max(unhappy * (1.0 - confirms));
    }
    for at in answers.iter().copied() {
        let help = probability(at, Act::Answer).max(probability(at, Act::CarryOut));
        helped = help.max(helped * HELP_DECAY);
    }
    [content, courteous, unhappy, helped]
}

/// Aggregates the acts of messages: one value for each act.
struct Aggregates<'a> {
    acts: &'a [MessageActs],
}

impl Aggregates<'_> {
    fn fold(&self, messages: &[usize], mut update: impl FnMut(&mut f64, f64, usize)) -> [f64; ACTS] {
        let mut values = [0.0; ACTS];
        for (position, message) in messages.iter().enumerate() {
            let Some(acts) = self.acts.get(*message) else { continue };
            for (value, act) in values.iter_mut().zip(Act::ALL) {
                update(value, f64::from(acts.probability(act)), position);
            }
        }
        values
    }

    fn total(&self, messages: &[usize]) -> [f64; ACTS] {
        self.fold(messages, |value, probability, _| *value += probability)
    }

    fn highest(&self, messages: &[usize]) -> [f64; ACTS] {
        self.fold(messages, |value, probability, _| *value = value.max(probability))
    }

    /// Sum with exponential decay from the last message backwards.
    fn decayed(&self, messages: &[usize]) -> [f64; ACTS] {
        let backwards: Vec<usize> = messages.iter().rev().copied().collect();
        self.fold(&backwards, |value, probability, position| {
            let weight = (0..position).fold(1.0, |weight, _| weight * DECAY);
            *value += weight * probability;
        })
    }
}
