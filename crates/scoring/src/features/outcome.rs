//! What the answers achieve: steps the customer can take, facts, actions that succeed or fail, and answers that
//! only put the customer off.
//!
//! What speaks for the answers is taken from those that the customer reacted to; what speaks against them from all.

use super::{FeatureList, Observations, dampened, flag, share};
use crate::answer::{denies_a_fact, tells_of_a_finished_action, tells_of_a_failed_action};
use crate::customer::EndState;
use crate::lexicon::Group;
use crate::transcript::Item;

pub(super) fn add(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    add_help(observations, features);
    add_actions(observations, features);
}

fn add_help(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let heard: Vec<_> = transcript.heard_items().collect();
    let instructs: Vec<bool> =
        heard.iter().map(|item| item.has(Group::Instruction) && !item.is_injected()).collect();
    features.raises("answer_instruction", "share", "AGENT_GAVE_STEPS", share(&instructs));
    features.raises("answer_instruction", "last", "AGENT_GAVE_STEPS", flag(instructs.last() == Some(&true)));
    let helps_last = heard.last().is_some_and(|item| helps(item));
    let end = observations.course.end;
    features.raises("end", "content_after_help", "CUSTOMER_THANKED", flag(helps_last && end.is_content()));
    let accepts = end.is_content() || matches!(end, EndState::Accepted | EndState::Closed);
    features.raises("end", "accepted_after_help", "CUSTOMER_ACCEPTED", flag(helps_last && accepts));
    let last_turn = transcript.customer_items().next_back();
    let presses = last_turn.is_some_and(|item| item.has_any(&[Group::Demand, Group::Request])) && !accepts;
    features.lowers("end", "presses", "CUSTOMER_PRESSED", flag(presses));
    let put_off = heard.last().is_some_and(|item| item.has(Group::Deflection) && !helps(item));
    features.lowers("end", "put_off", "AGENT_PUT_OFF", flag(put_off && end != EndState::Confirmed));
    let informs: Vec<bool> =
        heard.iter().map(|item| !item.reading.identifiers.is_empty() && !item.is_injected()).collect();
    features.raises("answer_facts", "share", "AGENT_GAVE_FACTS", share(&informs));
}

fn add_actions(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let (mut failures, mut open, mut done_heard) = (0usize, false, false);
    let (mut denials, mut successes) = (0usize, 0usize);
    for (position, index) in transcript.answers.iter().enumerate() {
        let Some(item) = transcript.item(*index) else { continue };
        let heard = position < transcript.heard;
        if denies_a_fact(transcript, *index) {
            denials += 1;
        }
        if tells_of_a_failed_action(transcript, *index) {
            failures += 1;
            open = true;
        } else if tells_of_a_finished_action(item) && heard && !item.is_injected() {
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
