//! What the customer had to do.

use assay_contracts::evaluation::Effort;

use crate::answer::asks_back;
use crate::customer::repeats_earlier;
use crate::lexicon::Group;
use crate::transcript::{Item, Role, Transcript, shares_any};

/// Messages that share more than this part of their words say the same.
const SAME_REQUEST: f64 = 0.5;
/// Answers that share more than this part of their words are a loop.
const SAME_ANSWER: f64 = 0.7;

/// What the customer had to do, with the items that show it.
#[derive(Debug, Default)]
pub(crate) struct EffortFindings {
    /// The counts of the evaluation.
    pub effort: Effort,
    /// Customer's items that repeat something.
    pub repeats: Vec<usize>,
    /// Answers that ask for something already given.
    pub asked_again: Vec<usize>,
    /// Answers that ask something back.
    pub clarifications: Vec<usize>,
    /// Answers that say what an earlier one said.
    pub loops: Vec<usize>,
}

impl EffortFindings {
    /// Counts turns, repetitions and questions.
    pub(crate) fn of(transcript: &Transcript<'_>) -> Self {
        let repeats: Vec<usize> = (0..transcript.customer.len())
            .filter(|position| repeats_something(transcript, *position))
            .filter_map(|position| transcript.customer.get(position).copied())
            .collect();
        let asked_again: Vec<usize> =
            transcript.answers.iter().copied().filter(|index| asks_again(transcript, *index)).collect();
        let clarifications: Vec<usize> = transcript
            .answers
            .iter()
            .copied()
            .filter(|index| transcript.item(*index).is_some_and(asks_back))
            .collect();
        let effort = Effort {
            customer_turns: turns(transcript),
            repeated_information: repeats.len().max(asked_again.len()) as u32,
            clarifications: clarifications.len() as u32,
        };
        Self { effort, repeats, asked_again, clarifications, loops: loops(transcript) }
    }
}

/// Answers that share most of their words with an earlier one.
fn loops(transcript: &Transcript<'_>) -> Vec<usize> {
    let answers = transcript.answers.iter().zip(&transcript.answer_likeness);
    answers.filter(|(_, likeness)| **likeness > SAME_ANSWER).map(|(index, _)| *index).collect()
}

/// Whether the item says, gives or asks again what an earlier one of the customer did.
fn repeats_something(transcript: &Transcript<'_>, position: usize) -> bool {
    let Some(index) = transcript.customer.get(position).copied() else {
        return false;
    };
    let Some(item) = transcript.item(index) else {
        return false;
    };
    let was_answered = transcript.answers.iter().any(|answer| *answer < index);
    was_answered
        && (item.has(Group::Repetition) && !item.has(Group::Thanks)
            || gives_identifier_again(transcript, index, item)
            || repeats_earlier(transcript, position, SAME_REQUEST))
}

/// Whether an identifier of the item was given by the customer before, in an earlier turn.
fn gives_identifier_again(transcript: &Transcript<'_>, index: usize, item: &Item<'_>) -> bool {
    transcript
        .items
        .iter()
        .take(index)
        .filter(|earlier| earlier.role == Role::Customer)
        .any(|earlier| shares_any(&earlier.reading.identifiers, &item.reading.identifiers))
}

/// Whether the answer asks for an identifier although the customer has given one already.
fn asks_again(transcript: &Transcript<'_>, index: usize) -> bool {
    let Some(item) = transcript.item(index) else {
        return false;
    };
    let asks =
        item.has(Group::AskIdentifier) && (item.has(Group::AskInformation) || item.reading.questions > 0);
    // What the answer names itself it does not ask for.
    let names_one = !item.reading.identifiers.is_empty();
    asks && !names_one
        && transcript
            .items
            .iter()
            .take(index)
            .any(|earlier| earlier.role == Role::Customer && !earlier.reading.identifiers.is_empty())
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
            Role::Ai | Role::Human | Role::Mixed => in_turn = false,
            Role::System | Role::Note => {}
        }
    }
    turns
}
