//! A conversation in numbers: what was done in it, by whom, when, and in which order.

use super::acts::{Act, MessageActs};
use super::encoding::IMPRESSIONS;
use super::structure::FACTS;
use super::view::Placed;
use crate::transcript::Role;

const ACTS: usize = Act::ALL.len();
/// Acts of the customer that speak against a solution.
const COMPLAINTS: [Act; 6] = Act::COMPLAINTS;
/// What an act counts for with each message of the same side behind it.
const FADES: f64 = 0.6;
/// What help counts for with each answer behind it.
const HELP_FADES: f64 = 0.8;
/// Numbers of a conversation: four states, nine sums over acts, the facts, and what the encoder says of the whole.
pub(crate) const FEATURES: usize = 4 + 9 * ACTS + FACTS + IMPRESSIONS;

/// The numbers, in a fixed order; `acts` are beside `read`.
pub(super) fn features(
    read: &[Placed],
    acts: &[MessageActs],
    facts: &[f32; FACTS],
    impression: &[f32],
) -> Vec<f32> {
    let of_role = |keep: fn(Role) -> bool| -> Vec<usize> {
        (0..read.len()).filter(|at| read.get(*at).is_some_and(|placed| keep(placed.role))).collect()
    };
    let customer = of_role(|role| role == Role::Customer);
    let answers = of_role(Role::speaks_to_customer);
    let last = customer.last().copied();
    let before_last = |at: &&usize| last.is_some_and(|last| **at < last);
    let heard = answers.iter().rfind(before_last).copied();
    let unheard: Vec<usize> = answers.iter().filter(|at| !before_last(at)).copied().collect();
    let final_turn: Vec<usize> = customer.iter().filter(|at| **at >= heard.unwrap_or(0)).copied().collect();
    let all: Vec<usize> = (0..read.len()).collect();
    let second_last: Vec<usize> = customer.iter().rev().skip(1).take(1).copied().collect();
    let sums = Sums { acts };
    let mut numbers: Vec<f64> = Vec::with_capacity(FEATURES);
    numbers.extend(states(acts, &customer, &answers));
    numbers.extend(sums.faded(&customer));
    numbers.extend(sums.faded(&answers));
    numbers.extend(sums.total(&all));
    numbers.extend(sums.highest(&all));
    numbers.extend(sums.total(last.as_slice()));
    numbers.extend(sums.total(&second_last));
    numbers.extend(sums.total(heard.as_slice()));
    numbers.extend(sums.total(&unheard));
    numbers.extend(sums.highest(&final_turn));
    let mut features: Vec<f32> = numbers.into_iter().map(|number| number as f32).collect();
    features.extend(facts);
    features.extend(impression);
    features
}

/// How far the customer is content, courteous and unhappy at the end, and how far they were helped.
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
        helped = help.max(helped * HELP_FADES);
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

    /// The last message counts whole, those before it less and less.
    fn faded(&self, messages: &[usize]) -> [f64; ACTS] {
        let backwards: Vec<usize> = messages.iter().rev().copied().collect();
        self.fold(&backwards, |sum, probability, place| {
            let share = (0..place).fold(1.0, |share, _| share * FADES);
            *sum += share * probability;
        })
    }
}
