//! What the customer's words say.

use super::{FeatureList, Observations, count, dampened, flag, last, second_half, share, worst};
use crate::customer::{Question, Reaction, leading_no, question_of, sarcasm};
use crate::lexicon::Group;
use crate::transcript::{COMPLAINTS, Item, Transcript};

/// Words that speak for the answers: subject, group, code of the signal.
const FAVOURABLE: [(&str, Group, &str); 3] = [
    ("customer_thanks", Group::Thanks, "CUSTOMER_THANKED"),
    ("customer_close", Group::Close, "CUSTOMER_CLOSED"),
    ("customer_praise", Group::Praise, "CUSTOMER_PRAISED"),
];

/// Words that speak against them.
const UNFAVOURABLE: [(&str, Group, &str); 8] = [
    ("customer_frustration", Group::Frustration, "CUSTOMER_FRUSTRATED"),
    ("customer_disagrees", Group::Disagree, "CUSTOMER_DISAGREED"),
    ("customer_repetition", Group::Repetition, "CUSTOMER_REPEATED"),
    ("customer_still", Group::Still, "CUSTOMER_REJECTED"),
    ("customer_alternative", Group::Alternative, "CUSTOMER_TRIED_ANOTHER"),
    ("customer_accusation", Group::Accusation, "CUSTOMER_ACCUSED"),
    ("customer_demand", Group::Demand, "CUSTOMER_PRESSED"),
    ("customer_urgency", Group::Urgency, "CUSTOMER_WAITED"),
];

pub(super) fn add(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    // One more turn takes an earlier complaint back only where the customer lets things rest with it.
    let from = observations.course.settled_turn + 1;
    let complaints = marks(transcript, |_, item| item.has_any(COMPLAINTS) || sarcasm(item).is_some());
    for (subject, group, code) in FAVOURABLE {
        let mut marks = marks(transcript, |index, item| speaks_for(transcript, index, item, group));
        for (mark, complains) in marks.iter_mut().zip(&complaints) {
            *mark &= !complains;
        }
        features.raises(subject, "share", code, share(&marks));
        features.raises(subject, "last_two", code, flag(marks.iter().rev().take(2).any(|mark| *mark)));
        features.raises(subject, "last", code, last(&marks));
    }
    for (subject, group, code) in UNFAVOURABLE {
        let marks = marks(transcript, |index, item| {
            item.has(group) && !(group == Group::Disagree && only_answers_no(transcript, index, item))
        });
        features.lowers(subject, "share", code, worst(share, &marks, from));
        features.lowers(subject, "second_half", code, worst(|marks| share(second_half(marks)), &marks, from));
        features.lowers(subject, "last", code, last(&marks));
        features.lowers(subject, "count", code, dampened(count(&marks)));
    }
    add_reactions(observations, features);
}

fn add_reactions(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let course = observations.course;
    let confirms = reaction_marks(observations, Reaction::Confirms);
    features.raises("customer_confirms", "share", "CUSTOMER_CONFIRMED", share(&confirms));
    let rejects = reaction_marks(observations, Reaction::Rejects);
    features.lowers(
        "customer_rejects",
        "count",
        "CUSTOMER_REJECTED",
        dampened(observations.course.count(Reaction::Rejects) as usize),
    );
    let late = worst(|marks| share(second_half(marks)), &rejects, course.settled_turn + 1);
    features.lowers("customer_rejects", "second_half", "CUSTOMER_REJECTED", late);
    let asks = course.count(Reaction::AsksForHuman) as usize;
    features.lowers("customer_asks_for_human", "count", "HUMAN_REQUESTED", dampened(asks));
    features.lowers("customer_sarcasm", "any", "CUSTOMER_SARCASTIC", flag(course.sarcastic > 0));
}

/// One mark for each of the customer's turns: whether any item of it holds.
fn marks(transcript: &Transcript<'_>, holds: impl Fn(usize, &Item<'_>) -> bool) -> Vec<bool> {
    let mut marks = vec![false; transcript.turn_count()];
    for (index, turn) in transcript.customer.iter().zip(&transcript.turns) {
        if let (Some(item), Some(mark)) = (transcript.item(*index), marks.get_mut(*turn)) {
            *mark |= holds(*index, item);
        }
    }
    marks
}

/// One mark for each turn: whether any message of it reacts this way.
fn reaction_marks(observations: &Observations<'_, '_>, reaction: Reaction) -> Vec<bool> {
    let mut marks = vec![false; observations.transcript.turn_count()];
    for (reacted, turn) in observations.course.reactions.iter().zip(&observations.transcript.turns) {
        if let Some(mark) = marks.get_mut(*turn) {
            *mark |= reacted.reaction == reaction;
        }
    }
    marks
}

/// Whether words of `group` are said after an answer, and not to an evaluator.
fn speaks_for(transcript: &Transcript<'_>, index: usize, item: &Item<'_>, group: Group) -> bool {
    let was_answered = transcript.answer_before(index).is_some();
    // Saying that it works is praise, too.
    let says = item.has(group) || group == Group::Praise && item.has(Group::Confirmation);
    says && was_answered && !item.is_injected()
}

/// Whether the item disagrees with nothing: it begins with the answer "no" to a question.
fn only_answers_no(transcript: &Transcript<'_>, index: usize, item: &Item<'_>) -> bool {
    let asked = transcript.answer_before(index).map(question_of);
    let disagreements = item.reading.found.iter().filter(|found| found.group == Group::Disagree).count();
    leading_no(item).is_some()
        && disagreements == 1
        && matches!(asked, Some(Question::AnythingElse | Question::Offer | Question::Other))
}
