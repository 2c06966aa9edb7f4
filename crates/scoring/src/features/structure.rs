//! What the shape of the conversation says: how it ends, how long it is, what is repeated.

use super::{FeatureList, Observations, dampened, flag, unsettled_items};
use crate::customer::{EndState, Reaction};
use crate::lexicon::Group;
use crate::transcript::{Item, common};

/// At most so many of the customer's earlier messages are compared with one: bounds the work.
const COMPARED_MESSAGES: usize = 50;

/// Beyond so many turns one more changes nothing.
const MOST_STEPS: u32 = 3;

pub(super) fn add(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    add_end(observations, features);
    add_effort(observations, features);
    add_opening(observations, features);
    add_coverage(observations, features);
}

fn add_end(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let end = observations.course.end;
    let unsettled = unsettled_items(observations);
    let asks_last = unsettled.iter().any(|item| item.reading.questions > 0) && !end.is_content();
    features.raises("end", "confirmed", "CUSTOMER_CONFIRMED", flag(end == EndState::Confirmed));
    features.raises("end", "content", "CUSTOMER_THANKED", flag(end.is_content()));
    let accepts = matches!(end, EndState::Accepted | EndState::Closed) || end.is_content();
    features.raises("end", "accepted", "CUSTOMER_ACCEPTED", flag(accepts));
    features.lowers("end", "rejected", "CUSTOMER_REJECTED", flag(end == EndState::Rejected));
    features.lowers("end", "asked_for_human", "HUMAN_REQUESTED", flag(end == EndState::AskedForHuman));
    features.lowers("end", "repeated", "CUSTOMER_REPEATED", flag(end == EndState::Repeated));
    features.lowers("end", "gave_up", "CUSTOMER_GAVE_UP", flag(end == EndState::GaveUp));
    features.lowers("end", "question", "QUESTION_LEFT_OPEN", flag(asks_last));
    features.lowers("end", "reopened", "REOPENED", flag(observations.course.reopened));
    let course = observations.course;
    let steps = |count: u32| f64::from(count.min(MOST_STEPS));
    features.raises("course", "content_streak", "CUSTOMER_THANKED", steps(course.content_streak));
    features.lowers("course", "unsettled", "ISSUE_LEFT_OPEN", steps(course.unsettled));
    features.lowers("course", "complaints", "CUSTOMER_COMPLAINED", steps(course.complaints()));
    let shouts = unsettled.iter().any(|item| item.reading.exclamations > 1) && !end.is_content();
    features.lowers("end", "exclaims", "CUSTOMER_FRUSTRATED", flag(shouts));
}

fn add_effort(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let findings = observations.effort;
    let words: u32 = transcript.customer_items().map(|item| item.reading.words).sum();
    let questions: u32 = transcript.customer_items().map(|item| item.reading.questions).sum();
    let last_words = last_words(observations);
    features.lowers("effort", "turns", "CUSTOMER_TURNS", further(findings.effort.customer_turns as usize));
    features.lowers("effort", "messages", "CUSTOMER_TURNS", further(transcript.customer.len()));
    features.lowers("effort", "words", "CUSTOMER_WROTE_MUCH", dampened(words as usize));
    features.lowers("effort", "last_words", "CUSTOMER_WROTE_MUCH", dampened(last_words as usize));
    features.lowers("effort", "questions", "CUSTOMER_ASKED", dampened(questions as usize));
    features.lowers("effort", "longest_run", "CUSTOMER_WAITED", further(longest_run(observations)));
    features.lowers("effort", "repeats", "CUSTOMER_REPEATED", dampened(findings.repeats.len()));
    let given: usize = transcript.customer_items().map(|item| item.reading.identifiers.len()).sum();
    features.lowers("effort", "identifiers", "CUSTOMER_WROTE_MUCH", dampened(given));
    features.lowers("effort", "asked_again", "ASKED_AGAIN", dampened(findings.asked_again.len()));
    features.lowers("effort", "clarifications", "AGENT_ASKED_BACK", dampened(findings.clarifications.len()));
    features.lowers("effort", "similarity", "CUSTOMER_REPEATED", mean_similarity(observations));
}

/// How the customer opens: a plea for help has a better outlook than an outcry.
fn add_opening(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let opening: Vec<&Item<'_>> = observations.transcript.opening_items().collect();
    let holds = |group| opening.iter().any(|item| item.has(group));
    let sum = |of: fn(&Item<'_>) -> u32| opening.iter().map(|item| of(item)).sum::<u32>() as usize;
    features.raises("opening", "plea", "CUSTOMER_ASKED_FOR_HELP", flag(holds(Group::Plea)));
    let count = |group| opening.iter().map(|item| item.count(group)).sum::<usize>();
    features.raises("opening", "product", "PRODUCT_QUESTION", dampened(count(Group::ProductQuestion)));
    features.lowers("opening", "service", "SERVICE_FAILURE", dampened(count(Group::ServiceFailure)));
    features.lowers("opening", "accusation", "CUSTOMER_ACCUSED", flag(holds(Group::Accusation)));
    features.lowers("opening", "frustration", "CUSTOMER_FRUSTRATED", flag(holds(Group::Frustration)));
    features.lowers(
        "opening",
        "exclaims",
        "CUSTOMER_FRUSTRATED",
        dampened(sum(|item| item.reading.exclamations)),
    );
    features.lowers("opening", "words", "CUSTOMER_WROTE_MUCH", dampened(sum(|item| item.reading.words)));
}

fn add_coverage(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let settled = observations.course.settled_answers;
    let heard: Vec<&Item<'_>> =
        transcript.answer_items().take(settled).filter(|item| !item.is_injected()).collect();
    let topic = transcript.customer_items().next().map(|item| item.reading.content_words.as_slice());
    let topic = topic.unwrap_or_default();
    let taken_up = topic
        .iter()
        .filter(|word| heard.iter().any(|item| item.reading.content_words.binary_search(word).is_ok()))
        .count();
    let coverage = if topic.is_empty() { 0.0 } else { taken_up as f64 / topic.len() as f64 };
    features.raises("answers", "coverage", "REQUEST_TAKEN_UP", coverage);
    features.raises("answers", "coverage_of_all", "REQUEST_TAKEN_UP", coverage_of_all(observations, &heard));
    let all = (heard.len() + transcript.turn_count()).max(1);
    features.raises("answers", "share", "CUSTOMER_ANSWERED", heard.len() as f64 / all as f64);
}

/// The share of everything the customer speaks of that the answers take up.
fn coverage_of_all(observations: &Observations<'_, '_>, heard: &[&Item<'_>]) -> f64 {
    let mut topics: Vec<u64> = observations
        .transcript
        .customer_items()
        .take(COMPARED_MESSAGES)
        .flat_map(|item| item.reading.content_words.iter().copied())
        .collect();
    topics.sort_unstable();
    topics.dedup();
    let mut answered: Vec<u64> = heard
        .iter()
        .take(COMPARED_MESSAGES)
        .flat_map(|item| item.reading.content_words.iter().copied())
        .collect();
    answered.sort_unstable();
    answered.dedup();
    if topics.is_empty() { 0.0 } else { common(&topics, &answered) as f64 / topics.len() as f64 }
}

/// Words of the last turn: who has much left to say is not done. A short complaint says as much as the longest
/// message before it.
fn last_words(observations: &Observations<'_, '_>) -> u32 {
    let transcript = observations.transcript;
    if observations.course.end.is_unhappy() {
        return transcript.customer_items().map(|item| item.reading.words).max().unwrap_or(0);
    }
    let last_turn = transcript.turns.last();
    let in_last_turn = transcript.turns.iter().filter(|turn| Some(*turn) == last_turn).count();
    transcript.customer_items().rev().take(in_last_turn).map(|item| item.reading.words).sum()
}

/// Dampened count beyond the first: one message is what every conversation needs.
fn further(count: usize) -> f64 {
    dampened(count.saturating_sub(1))
}

/// The longest run of the customer's messages without an answer.
fn longest_run(observations: &Observations<'_, '_>) -> usize {
    let transcript = observations.transcript;
    let course = observations.course;
    let (mut run, mut longest, mut before) = (0usize, 0usize, None);
    for ((index, turn), reacted) in transcript.customer.iter().zip(&transcript.turns).zip(&course.reactions) {
        if before != Some(*turn) {
            run = 0;
        }
        before = Some(*turn);
        // Courtesy waits for nothing.
        let waits = !matches!(
            reacted.reaction,
            Reaction::Confirms
                | Reaction::Thanks
                | Reaction::Closes
                | Reaction::Accepts
                | Reaction::SaysNothing
        );
        run += usize::from(waits && transcript.item(*index).is_some());
        longest = longest.max(run);
    }
    longest
}

/// How much, on average, each of the customer's messages shares with the closest earlier one.
fn mean_similarity(observations: &Observations<'_, '_>) -> f64 {
    let likeness = &observations.transcript.customer_likeness;
    // The first one has none before it.
    let closest = likeness.get(1..likeness.len().min(COMPARED_MESSAGES)).unwrap_or_default();
    if closest.is_empty() { 0.0 } else { closest.iter().sum::<f64>() / closest.len() as f64 }
}
