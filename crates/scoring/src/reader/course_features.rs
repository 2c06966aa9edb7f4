//! Features of step 2: which acts occurred, by whom, when, and in which order.

use super::acts::{Act, MessageActs};
use super::encoding::IMPRESSIONS;
use super::selection::SelectedMessage;
use super::structure::FACTS;
use crate::transcript::Role;

const ACTS: usize = Act::ALL.len();
/// Acts of the customer that indicate no solution.
const COMPLAINTS: [Act; 6] = Act::COMPLAINTS;
/// Decay of the weight of an act per later message of the same side.
const DECAY: f64 = 0.6;
/// Decay of help per later answer.
const HELP_DECAY: f64 = 0.8;
/// Length of the vector: four states, nine sums over acts, the structural features, and the impression.
pub(crate) const FEATURES: usize = 4 + 9 * ACTS + FACTS + IMPRESSIONS;

/// The feature vector, in a fixed order; `acts` are parallel to `read`.
pub(super) fn features(
    read: &[SelectedMessage],
    acts: &[MessageActs],
    facts: &[f32; FACTS],
    impression: &[f32],
) -> Vec<f32> {
    let of_role = |keep: fn(Role) -> bool| -> Vec<usize> {
        (0..read.len()).filter(|at| read.get(*at).is_some_and(|selected| keep(selected.role))).collect()
    };
    let customer = of_role(|role| role == Role::Customer);
    let answers = of_role(Role::speaks_to_customer);
    let last = customer.last().copied();
    let before_last = |at: &&usize| last.is_some_and(|last| **at < last);
    let last_seen_answer = answers.iter().rfind(before_last).copied();
    let answers_after_customer: Vec<usize> = answers.iter().filter(|at| !before_last(at)).copied().collect();
    let final_turn: Vec<usize> =
        customer.iter().filter(|at| **at >= last_seen_answer.unwrap_or(0)).copied().collect();
    let all: Vec<usize> = (0..read.len()).collect();
    let second_last: Vec<usize> = customer.iter().rev().skip(1).take(1).copied().collect();
    let sums = Sums { acts };
    let mut numbers: Vec<f64> = Vec::with_capacity(FEATURES);
    numbers.extend(states(acts, &customer, &answers));
    numbers.extend(sums.decayed(&customer));
    numbers.extend(sums.decayed(&answers));
    numbers.extend(sums.total(&all));
    numbers.extend(sums.highest(&all));
    numbers.extend(sums.total(last.as_slice()));
    numbers.extend(sums.total(&second_last));
    numbers.extend(sums.total(last_seen_answer.as_slice()));
    numbers.extend(sums.total(&answers_after_customer));
    numbers.extend(sums.highest(&final_turn));
    let mut features: Vec<f32> = numbers.into_iter().map(|number| number as f32).collect();
    features.extend(facts);
    features.extend(impression);
    features
}

/// Final degrees of content, courteous, unhappy, and helped.
fn states(acts: &[MessageActs], customer: &[usize], answers: &[usize]) -> [f64; 4] {
    let probability = |at: usize, act: Act| acts.get(at).map_or(0.0, |acts| f64::from(acts.probability(act)));
    let (mut content, mut courteous, mut unhappy, mut helped) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for at in customer.iter().copied() {
        let confirms = probability(at, Act::Confirm);
        let complains = COMPLAINTS.into_iter().map(|act| probability(at, act)).fold(0.0, f64::max);
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

struct Sums<'a> {
    acts: &'a [MessageActs],
}

impl Sums<'_> {
    fn fold(&self, messages: &[usize], mut add: impl FnMut(&mut f64, f64, usize)) -> [f64; ACTS] {
        let mut sums = [0.0; ACTS];
        for (place, message) in messages.iter().enumerate() {
            let Some(acts) = self.acts.get(*message) else { continue };
            for (sum, act) in sums.iter_mut().zip(Act::ALL) {
                add(sum, f64::from(acts.probability(act)), place);
            }
        }
        sums
    }

    fn total(&self, messages: &[usize]) -> [f64; ACTS] {
        self.fold(messages, |sum, probability, _| *sum += probability)
    }

    fn highest(&self, messages: &[usize]) -> [f64; ACTS] {
        self.fold(messages, |sum, probability, _| *sum = sum.max(probability))
    }

    /// Sum with exponential decay from the last message backwards.
    fn decayed(&self, messages: &[usize]) -> [f64; ACTS] {
        let backwards: Vec<usize> = messages.iter().rev().copied().collect();
        self.fold(&backwards, |sum, probability, place| {
            let share = (0..place).fold(1.0, |share, _| share * DECAY);
            *sum += share * probability;
        })
    }
}
