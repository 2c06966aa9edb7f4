//! What moved a score: the model's own contributions, added up by code, and the guards' adjustments.

use assay_contracts::evaluation::Signal;

use super::EvidenceBook;
use crate::customer::{CustomerCourse, Reaction, sarcasm};
use crate::effort::EffortFindings;
use crate::facts::hundredths;
use crate::handoff::HandoffFindings;
use crate::lexicon::Group;
use crate::model::Scored;
use crate::transcript::{Found, Transcript};

/// Effects below this are noise to a reader.
const SMALLEST_EFFECT: f64 = 0.05;
/// At most so many signals a dimension.
const MOST_SIGNALS: usize = 8;
/// At most so many quotes a signal.
const MOST_QUOTES: usize = 2;

/// The strongest signals first; equal ones by code.
pub(crate) fn signals(
    scored: &Scored,
    course: &CustomerCourse,
    effort: &EffortFindings,
    transcript: &Transcript<'_>,
    book: &mut EvidenceBook<'_, '_>,
) -> Vec<Signal> {
    let mut effects: Vec<(&'static str, f64, Option<usize>)> =
        scored.contributions.iter().map(|(code, effect)| (*code, *effect, None)).collect();
    for adjustment in &scored.adjustments {
        match effects.iter_mut().find(|(code, _, _)| *code == adjustment.code) {
            Some((_, effect, item)) => {
                *effect += adjustment.effect;
                *item = adjustment.item;
            }
            None => effects.push((adjustment.code, adjustment.effect, adjustment.item)),
        }
    }
    effects.retain(|(_, effect, _)| effect.abs() >= SMALLEST_EFFECT);
    effects.sort_by(|one, other| other.1.abs().total_cmp(&one.1.abs()).then(one.0.cmp(other.0)));
    effects.truncate(MOST_SIGNALS);
    effects
        .into_iter()
        .map(|(code, effect, item)| {
            let mut places = places(code, course, effort, transcript);
            if places.is_empty() {
                places.extend(item.map(|item| (item, None)));
            }
            // The latest words are the ones that count.
            let skipped = places.len().saturating_sub(MOST_QUOTES);
            let evidence = places
                .into_iter()
                .skip(skipped)
                .filter_map(|(item, phrase)| book.quote(item, phrase))
                .collect();
            Signal { code: code.to_owned(), effect: hundredths(effect), evidence }
        })
        .collect()
}

/// The deductions of the handoff score.
pub(crate) fn handoff_signals(
    handoff: &HandoffFindings,
    transcript: &Transcript<'_>,
    book: &mut EvidenceBook<'_, '_>,
) -> Vec<Signal> {
    let mut signals: Vec<Signal> = handoff
        .deductions
        .iter()
        .map(|deduction| Signal {
            code: deduction.code.to_owned(),
            effect: -hundredths(deduction.points),
            evidence: book
                .quote(deduction.item, shown_by(deduction.code, transcript, deduction.item))
                .into_iter()
                .collect(),
        })
        .collect();
    if handoff.score <= 1.0 {
        let evidence = handoff.opened_by.and_then(|(item, phrase)| book.quote(item, phrase));
        let code = if handoff.customer_asked() { "HUMAN_REQUEST_IGNORED" } else { "PROMISED_HUMAN_MISSING" };
        signals.push(Signal {
            code: code.to_owned(),
            effect: -4.0,
            evidence: evidence.into_iter().collect(),
        });
    }
    signals
}

/// Where in the transcript a signal can be seen.
fn places(
    code: &str,
    course: &CustomerCourse,
    effort: &EffortFindings,
    transcript: &Transcript<'_>,
) -> Vec<(usize, Option<Found>)> {
    let reacted = |reaction| reactions(course, transcript, reaction);
    let plain = |items: &[usize]| {
        items.iter().map(|item| (*item, shown_by(code, transcript, *item))).collect::<Vec<_>>()
    };
    match code {
        "CUSTOMER_CONFIRMED" => reacted(Reaction::Confirms),
        "CUSTOMER_THANKED" => said(transcript, true, Group::Thanks),
        "CUSTOMER_PRAISED" => said(transcript, true, Group::Praise),
        "CUSTOMER_CLOSED" => said(transcript, true, Group::Close),
        "CUSTOMER_FRUSTRATED" => said(transcript, true, Group::Frustration),
        "CUSTOMER_DISAGREED" => said(transcript, true, Group::Disagree),
        "CUSTOMER_WAITED" => said(transcript, true, Group::Urgency),
        "CUSTOMER_REJECTED" => reacted(Reaction::Rejects),
        "CUSTOMER_GAVE_UP" => reacted(Reaction::GivesUp),
        "HUMAN_REQUESTED" | "HUMAN_REQUEST_IGNORED" => reacted(Reaction::AsksForHuman),
        "CUSTOMER_SARCASTIC" => transcript
            .customer
            .iter()
            .filter_map(|index| transcript.item(*index).and_then(sarcasm).map(|found| (*index, Some(found))))
            .collect(),
        "CUSTOMER_REPEATED" => plain(&effort.repeats),
        "ASKED_AGAIN" => plain(&effort.asked_again),
        "AGENT_REPEATED_ITSELF" => plain(&effort.loops),
        "AGENT_ASKED_BACK" => said(transcript, false, Group::AskInformation),
        "AGENT_APOLOGISED" => said(transcript, false, Group::Apology),
        "AGENT_REFUSED" => said(transcript, false, Group::Refusal),
        "AGENT_CITED_POLICY" => said(transcript, false, Group::Policy),
        "AGENT_CONFUSED" => said(transcript, false, Group::Confusion),
        "AGENT_HANDED_OVER" => said(transcript, false, Group::TransferPromise),
        "AGENT_PUT_OFF" => said(transcript, false, Group::Deflection),
        "AGENT_GAVE_STEPS" => said(transcript, false, Group::Instruction),
        "ACTION_COMPLETED" => said(transcript, false, Group::Done),
        "ACTION_FAILED" => {
            let failures = said(transcript, false, Group::Failure);
            if failures.is_empty() { said(transcript, false, Group::NothingFound) } else { failures }
        }
        "CUSTOMER_ACCEPTED" => reacted(Reaction::Accepts),
        "CUSTOMER_ACCUSED" => said(transcript, true, Group::Accusation),
        "CUSTOMER_PRESSED" => said(transcript, true, Group::Demand),
        "CUSTOMER_TRIED_ANOTHER" => said(transcript, true, Group::Alternative),
        "CUSTOMER_ASKED_FOR_HELP" => opening(transcript, Group::Plea),
        "PRODUCT_QUESTION" => opening(transcript, Group::ProductQuestion),
        "SERVICE_FAILURE" => opening(transcript, Group::ServiceFailure),
        _ => Vec::new(),
    }
}

/// The words in an item that show a signal, where it is not plain from the whole item.
fn shown_by(code: &str, transcript: &Transcript<'_>, item: usize) -> Option<Found> {
    let group = match code {
        "CUSTOMER_REPEATED" => Group::Repetition,
        "ASKED_AGAIN" => Group::AskIdentifier,
        "HUMAN_REQUESTED_AGAIN" => Group::HumanRequest,
        "CUSTOMER_FRUSTRATED" => Group::Frustration,
        _ => return None,
    };
    transcript.item(item)?.first(group)
}

fn reactions(
    course: &CustomerCourse,
    transcript: &Transcript<'_>,
    reaction: Reaction,
) -> Vec<(usize, Option<Found>)> {
    let reactions = transcript.customer.iter().zip(&course.reactions);
    reactions
        .filter(|(_, reacted)| reacted.reaction == reaction)
        .map(|(index, reacted)| (*index, reacted.phrase))
        .collect()
}

/// Where the customer's opening speaks of `group`.
fn opening(transcript: &Transcript<'_>, group: Group) -> Vec<(usize, Option<Found>)> {
    let items = transcript.customer.iter().zip(&transcript.turns).filter(|(_, turn)| **turn == 0);
    items
        .filter_map(|(index, _)| transcript.item(*index)?.first(group).map(|found| (*index, Some(found))))
        .collect()
}

fn said(transcript: &Transcript<'_>, by_customer: bool, group: Group) -> Vec<(usize, Option<Found>)> {
    let indices = if by_customer { &transcript.customer } else { &transcript.answers };
    indices
        .iter()
        .filter_map(|index| {
            let item = transcript.item(*index).filter(|item| !(by_customer && item.is_injected()))?;
            item.first(group).map(|found| (*index, Some(found)))
        })
        .collect()
}
