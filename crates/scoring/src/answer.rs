//! What one answer amounts to: a question back, a finished action, something substantive, or nothing.

use crate::lexicon::Group;
use crate::transcript::{Found, Item, Role, Transcript, sentence_around};

/// An answer of fewer words is no substantive answer.
const SUBSTANTIVE_WORDS: u32 = 4;
/// At most so many phrases of a kind are compared with those of another: bounds the work on long texts.
const COMPARED_PHRASES: usize = 16;

/// An answer of so many words says something beside its offer.
const ANSWER_WITH_OFFER: u32 = 12;
/// An answer of more words says something besides its greeting.
const LONG_ANSWER: u32 = 30;
/// The subject of a refusal stands at most so many words before it.
const SUBJECT_REACH: usize = 4;

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

/// Whether the answer is a greeting, an error text or praise of itself.
pub(crate) fn says_nothing_of_use(item: &Item<'_>) -> bool {
    item.has(Group::EmptyAnswer)
        && item.reading.words < LONG_ANSWER
        && !item.has_any(&[Group::Instruction, Group::Done, Group::Deflection])
}

/// Whether the answer says something: more than a few words that are not just a question, a transfer or a goodbye.
pub(crate) fn is_substantive(item: &Item<'_>) -> bool {
    // "It takes two days. Shall I …?" answers before it offers.
    let answers_first = item.has_any(&[Group::Offer, Group::TransferOffer])
        && item.reading.questions == 1
        && item.reading.words >= ANSWER_WITH_OFFER;
    let only_asks =
        asks_back(item) && item.reading.questions >= 1 && item.reading.words < 30 && !answers_first;
    let only_transfers = item.has(Group::TransferPromise);
    let only_closes = item.has(Group::AnythingElse) && item.reading.words < 12;
    item.reading.words >= SUBSTANTIVE_WORDS
        && !says_nothing_of_use(item)
        && !only_asks
        && !only_transfers
        && !only_closes
}

/// Whether the answer says that an attempt failed or that a search found nothing.
pub(crate) fn tells_of_a_failed_action(transcript: &Transcript<'_>, index: usize) -> bool {
    transcript.item(index).is_some_and(fails) && !denies_a_fact(transcript, index)
}

/// Whether the answer, taken alone, tells of a failure.
pub(crate) fn fails(item: &Item<'_>) -> bool {
    item.has_any(&[Group::Failure, Group::NothingFound])
        || refusals(item).any(|found| is_about_the_agent(item, found))
}

/// Whether the answer's "no" is the information that was asked for ("they have no live music"): the customer asked,
/// and no sentence that refuses speaks of the agent ("I was unable to book").
pub(crate) fn denies_a_fact(transcript: &Transcript<'_>, index: usize) -> bool {
    let Some(item) = transcript.item(index) else { return false };
    let asked = transcript
        .items
        .iter()
        .take(index)
        .rfind(|earlier| earlier.role == Role::Customer)
        .is_some_and(|question| question.reading.questions > 0);
    let mut refusals = refusals(item).peekable();
    asked
        && !item.has(Group::Failure)
        && refusals.peek().is_some()
        && refusals.all(|found| !is_about_the_agent(item, found))
}

/// Words by which the answer refuses or finds nothing.
fn refusals(item: &Item<'_>) -> impl Iterator<Item = Found> {
    let found = item.reading.found.iter().copied();
    found.filter(|found| matches!(found.group, Group::Refusal | Group::NothingFound)).take(COMPARED_PHRASES)
}

/// Whether "I" or "we" is the subject of the phrase: it stands in it or among the few words before it.
fn is_about_the_agent(item: &Item<'_>, found: Found) -> bool {
    let text = item.message.content.as_str();
    let Found { start, end, .. } = found;
    let (begin, _) = sentence_around(text, start, end);
    let is_self = |word: &str| {
        let word = word.trim_matches(|character: char| !character.is_alphanumeric() && character != '\'');
        ["i", "we", "i've", "we've", "i'm", "we're"].iter().any(|own| word.eq_ignore_ascii_case(own))
    };
    let excuses =
        |word: &str| ["sorry", "afraid", "sorry,"].iter().any(|excuse| word.eq_ignore_ascii_case(excuse));
    let before: Vec<&str> =
        text.get(begin..start).unwrap_or("").split_whitespace().rev().take(SUBJECT_REACH).collect();
    let within = text.get(start..end).unwrap_or("").split_whitespace().any(is_self);
    let subject = before.iter().position(|word| is_self(word));
    // "I'm sorry, they …": the "I" belongs to the excuse.
    let excused = subject.is_some_and(|at| at > 0 && before.get(at - 1).is_some_and(|next| excuses(next)));
    within && !text.get(start..end).is_some_and(|phrase| phrase.to_ascii_lowercase().contains("afraid"))
        || subject.is_some() && !excused
}
