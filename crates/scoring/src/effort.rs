//! Customer effort: turns, repetitions, questions asked back, loops.

use assay_contracts::evaluation::Effort;

use crate::reader::{Act, Reading};
use crate::transcript::{Role, Transcript, shares_any};

/// Minimum word overlap of customer messages that repeat each other.
const REPETITION_OVERLAP: f64 = 0.5;
/// Minimum probability of a repetition in a message that has an identifier of an earlier one.
const MIN_REPEAT_WITH_IDENTIFIER: f32 = 0.1;
/// Minimum word overlap of answers that form a loop.
const LOOP_OVERLAP: f64 = 0.7;

/// The counts of effort, with the items that show it.
#[derive(Debug, Default)]
pub(crate) struct EffortFindings {
    /// The counts of the evaluation.
    pub effort: Effort,
    /// Customer items that repeat something.
    pub repeats: Vec<usize>,
    /// Answers that repeat an earlier one.
    pub loops: Vec<usize>,
}

impl EffortFindings {
    /// Counts turns, repetitions and questions.
    pub(crate) fn of(transcript: &Transcript<'_>, reading: &Reading) -> Self {
        let repeats: Vec<usize> = transcript
            .customer
            .iter()
            .copied()
            .filter(|index| {
                let was_answered = transcript.answers.iter().any(|answer| answer < index);
                was_answered
                    && (reading.acts(*index).has(Act::Repeat)
                        || transcript.repeats_words(*index, REPETITION_OVERLAP)
                        || may_repeat(reading, *index) && repeats_identifier(transcript, *index))
            })
            .collect();
        let answers = || transcript.answers.iter().copied().filter(|index| reading.has_read(*index));
        let clarifications =
            answers().filter(|index| reading.acts(*index).has(Act::RequestInformation)).count();
        let effort = Effort {
            customer_turns: turns(transcript),
            repeated_information: repeats.len() as u32,
            clarifications: clarifications as u32,
        };
        let loops = answers().filter(|index| transcript.similarity(*index) > LOOP_OVERLAP).collect();
        Self { effort, repeats, loops }
    }
}

/// Whether the reader considers a repetition possible: a repeated identifier alone proves none, because customers also name an
/// order number or an amount again to confirm it.
fn may_repeat(reading: &Reading, index: usize) -> bool {
    reading.acts(index).probability(Act::Repeat) >= MIN_REPEAT_WITH_IDENTIFIER
}

/// Whether an earlier message of the customer has an identifier of the item at `index`.
fn repeats_identifier(transcript: &Transcript<'_>, index: usize) -> bool {
    let Some(item) = transcript.item(index) else { return false };
    let mut earlier = transcript.items.iter().take(index).filter(|earlier| earlier.role == Role::Customer);
    earlier.any(|earlier| shares_any(&earlier.identifiers, &item.identifiers))
}

/// Runs of the customer's messages; notes and events do not end a run.
fn turns(transcript: &Transcript<'_>) -> u32 {
    let mut turns = 0;
    let mut in_turn = false;
    for item in &transcript.items {
        match item.role {
            Role::Customer => {
                turns += u32::from(!in_turn);
                in_turn = true;
            }
            role if role.ends_customer_turn() => in_turn = false,
            _ => {}
        }
    }
    turns
}
