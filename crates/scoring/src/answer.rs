//! What one answer amounts to: a question back, a finished action, something substantive, or nothing.

use crate::lexicon::Group;
use crate::transcript::Item;

/// An answer of fewer words is no substantive answer.
const SUBSTANTIVE_WORDS: u32 = 4;
/// At most so many phrases of a kind are compared with those of another: bounds the work on long texts.
const COMPARED_PHRASES: usize = 16;

/// Whether the answer asks the customer for something other than "anything else?".
pub(crate) fn asks_back(item: &Item<'_>) -> bool {
    let courtesy = u32::from(item.has(Group::AnythingElse) || item.has(Group::AsksOutcome));
    item.has(Group::AskInformation) || item.reading.questions > courtesy
}

/// Whether the answer says that something was done, in a sentence that refuses nothing.
pub(crate) fn tells_of_a_finished_action(item: &Item<'_>) -> bool {
    let content = item.message.content.as_str();
    let of_group =
        |group| item.reading.found.iter().filter(move |found| found.group == group).take(COMPARED_PHRASES);
    of_group(Group::Done).any(|done| {
        !of_group(Group::Refusal).any(|refusal| {
            let between = done.end.min(refusal.end)..done.start.max(refusal.start);
            content.get(between).is_none_or(|between| !between.contains(['.', '!', '?', '\n']))
        })
    })
}

/// Whether the answer says something: more than a few words that are not just a question, a transfer or a goodbye.
pub(crate) fn is_substantive(item: &Item<'_>) -> bool {
    let only_asks = asks_back(item) && item.reading.questions >= 1 && item.reading.words < 30;
    let only_transfers = item.has(Group::TransferPromise);
    let only_closes = item.has(Group::AnythingElse) && item.reading.words < 12;
    item.reading.words >= SUBSTANTIVE_WORDS && !only_asks && !only_transfers && !only_closes
}
