//! What the answers achieve: steps the customer can take, facts, actions that succeed or fail, and answers that
//! only put the customer off.
//!
//! What speaks for the answers is taken from those that the customer reacted to; what speaks against them from all.

use super::{FeatureList, Observations, dampened, flag, last, least, share, unsettled_items, worst};
use crate::answer::{denies_a_fact, tells_of_a_failed_action, tells_of_a_finished_action};
use crate::customer::EndState;
use crate::lexicon::Group;
use crate::transcript::Item;

pub(super) fn add(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    add_help(observations, features);
    add_actions(observations, features);
}

fn add_help(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let settled = observations.course.settled_answers;
    let heard: Vec<&Item<'_>> = transcript.heard_items().collect();
    let marks = |holds: fn(&Item<'_>) -> bool| {
        heard.iter().map(|item| !item.is_injected() && holds(item)).collect::<Vec<bool>>()
    };
    let instructs = marks(|item| item.has(Group::Instruction));
    features.raises("answer_instruction", "share", "AGENT_GAVE_STEPS", least(share, &instructs, settled));
    features.raises("answer_instruction", "last", "AGENT_GAVE_STEPS", least(last, &instructs, settled));
    let informs = marks(|item| !item.reading.identifiers.is_empty());
    features.raises("answer_facts", "share", "AGENT_GAVE_FACTS", least(share, &informs, settled));
    let helped = least(last, &marks(helps), settled) > 0.0;
    let end = observations.course.end;
    features.raises("end", "content_after_help", "CUSTOMER_THANKED", flag(helped && end.is_content()));
    let accepts = end.is_content() || matches!(end, EndState::Accepted | EndState::Closed);
    features.raises("end", "accepted_after_help", "CUSTOMER_ACCEPTED", flag(helped && accepts));
    let unsettled = unsettled_items(observations);
    let presses = unsettled.iter().any(|item| item.has_any(&[Group::Demand, Group::Request])) && !accepts;
    features.lowers("end", "presses", "CUSTOMER_PRESSED", flag(presses));
    let puts_off: Vec<bool> = heard.iter().map(|item| item.has(Group::Deflection) && !helps(item)).collect();
    let put_off = worst(last, &puts_off, settled) > 0.0 && end != EndState::Confirmed;
    features.lowers("end", "put_off", "AGENT_PUT_OFF", flag(put_off));
}

fn add_actions(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let (mut failures, mut open, mut done_heard) = (0usize, false, false);
    let (mut denials, mut successes) = (0usize, 0usize);
    for (position, index) in transcript.answers.iter().enumerate() {
        let Some(item) = transcript.item(*index) else { continue };
        let accepted = position < observations.course.settled_answers;
        if denies_a_fact(transcript, *index) {
            denials += 1;
        }
        if tells_of_a_failed_action(transcript, *index) {
            failures += 1;
            open = true;
        } else if tells_of_a_finished_action(item) && accepted && !item.is_injected() {
            open = false;
            done_heard = true;
            successes += 1;
        }
    }
    features.lowers("answer_failure", "count", "ACTION_FAILED", dampened(failures));
    features.lowers("answer_failure", "open", "ACTION_FAILED", flag(open));
    features.lowers("answer_denial", "count", "AGENT_DENIED", dampened(denials));
    let stands = done_heard && !open && !observations.course.end.is_unhappy();
    features.raises("answer_done", "stands", "ACTION_COMPLETED", flag(stands));
    let count = if stands { dampened(successes) } else { 0.0 };
    features.raises("answer_done", "count", "ACTION_COMPLETED", count);
}

/// Whether an answer gives steps or facts, or tells of a finished action.
fn helps(item: &Item<'_>) -> bool {
    !item.is_injected()
        && (item.has(Group::Instruction)
            || !item.reading.identifiers.is_empty()
            || tells_of_a_finished_action(item))
}
