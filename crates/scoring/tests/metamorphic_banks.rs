//! Phrases that nobody listed: for each bank the share of phrases and samples where the scores move as they must.
//!
//! `cargo nextest run -p assay-scoring --test metamorphic_banks --no-capture` shows the worst phrases of each bank.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it measured"
)]

mod support;

use support::banks::{Bank, BankOutcome, LANGUAGES, Relation, measure, measure_dressed};
use support::dressing::Dressing;
use support::scorer;

/// A bank with fewer phrases says little.
const FEWEST_IN_ENGLISH: usize = 30;
/// The same for the other languages.
const FEWEST_ELSEWHERE: usize = 8;
/// So many of the worst phrases of a bank are shown.
const SHOWN: usize = 12;

/// What was measured, rounded down; a floor may only be raised. One share for each of [`LANGUAGES`], in its order.
const FLOORS: [(Relation, [f64; 6]); 10] = [
    (Relation::Rejections, [0.98, 0.9, 0.9, 0.85, 0.95, 0.95]),
    (Relation::Sarcasm, [0.95, 1.0, 0.93, 1.0, 1.0, 1.0]),
    (Relation::HumanRequests, [1.0, 1.0, 1.0, 0.93, 1.0, 0.93]),
    (Relation::ComplaintRepetitions, [0.98, 1.0, 1.0, 1.0, 1.0, 0.81]),
    (Relation::Confirmations, [1.0, 1.0, 1.0, 0.93, 1.0, 1.0]),
    (Relation::AgentClaims, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::AgentInjections, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::CustomerInjections, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::SystemNotes, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::NeutralAdditions, [0.82, 0.93, 0.81, 0.68, 0.75, 0.56]),
];

/// The same for the phrases that nobody worked on.
const HELD_OUT_FLOORS: [(Relation, [f64; 6]); 10] = [
    (Relation::Rejections, [0.91, 0.93, 0.93, 0.83, 0.83, 0.83]),
    (Relation::Sarcasm, [0.89, 0.93, 0.86, 0.86, 0.9, 0.8]),
    (Relation::HumanRequests, [1.0, 1.0, 1.0, 0.96, 1.0, 1.0]),
    (Relation::ComplaintRepetitions, [1.0, 0.96, 1.0, 1.0, 0.96, 0.86]),
    (Relation::Confirmations, [0.98, 0.96, 0.83, 0.86, 0.9, 0.93]),
    (Relation::AgentClaims, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::AgentInjections, [1.0, 1.0, 1.0, 1.0, 0.96, 0.93]),
    (Relation::CustomerInjections, [0.92, 0.93, 0.86, 0.83, 0.86, 0.96]),
    (Relation::SystemNotes, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::NeutralAdditions, [0.79, 0.83, 0.73, 0.7, 0.7, 0.73]),
];

/// Of the English phrases that pass as they are, the share that passes in another dress too; one for each of
/// [`Dressing::ALL`], in its order. When more phrases pass as they are, this may fall and is then measured anew.
const DRESSED_FLOORS: [(Relation, [f64; 8]); 5] = [
    (Relation::Rejections, [1.0, 0.97, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::Sarcasm, [0.97, 0.97, 1.0, 0.97, 0.97, 1.0, 1.0, 1.0]),
    (Relation::HumanRequests, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::Confirmations, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::CustomerInjections, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
];

#[test]
fn a_rejection_lowers_resolution_accuracy() {
    assert_floors(Relation::Rejections);
}

#[test]
fn sarcasm_lowers_resolution_accuracy() {
    assert_floors(Relation::Sarcasm);
}

#[test]
fn asking_for_a_human_lowers_resolution_accuracy() {
    assert_floors(Relation::HumanRequests);
}

#[test]
fn the_first_request_said_again_lowers_resolution_accuracy() {
    assert_floors(Relation::ComplaintRepetitions);
}

#[test]
fn a_confirmation_raises_resolution_accuracy() {
    assert_floors(Relation::Confirmations);
}

#[test]
fn a_claim_of_the_agent_raises_nothing() {
    assert_floors(Relation::AgentClaims);
}

#[test]
fn an_injection_by_the_agent_raises_nothing() {
    assert_floors(Relation::AgentInjections);
}

#[test]
fn an_injection_by_the_customer_raises_nothing() {
    assert_floors(Relation::CustomerInjections);
}

#[test]
fn a_note_of_the_system_changes_nothing() {
    assert_floors(Relation::SystemNotes);
}

#[test]
fn a_signature_changes_nothing() {
    assert_floors(Relation::NeutralAdditions);
}

/// Shares only: whoever works on the reader is not to see which phrases fail.
#[test]
fn phrases_that_nobody_worked_on_mean_the_same() {
    let mut fallen = Vec::new();
    for (relation, floors) in HELD_OUT_FLOORS {
        for (language, floor) in LANGUAGES.into_iter().zip(floors) {
            let share = measure(scorer(), Bank::HeldOut, relation, language).share();
            eprintln!("held out, {}.{language}: holds in {share:.3}, floor {floor}", relation.stem());
            if share < floor {
                fallen.push(format!("{}.{language}: {share:.3} < {floor}", relation.stem()));
            }
        }
    }
    assert!(fallen.is_empty(), "{fallen:#?}");
}

#[test]
fn a_phrase_means_the_same_in_another_dress() {
    let mut fallen = Vec::new();
    for (relation, floors) in DRESSED_FLOORS {
        for (dressing, floor) in Dressing::ALL.into_iter().zip(floors) {
            let outcome = measure_dressed(scorer(), relation, dressing);
            let name = format!("{}.{dressing:?}", relation.stem());
            show(&name, floor, &outcome);
            if outcome.share() < floor {
                fallen.push(format!("{name}: {:.3} < {floor}", outcome.share()));
            }
        }
    }
    assert!(fallen.is_empty(), "{fallen:#?}");
}

#[test]
fn every_bank_is_large_enough_and_holds_no_phrase_twice() {
    for (relation, _) in FLOORS {
        for language in LANGUAGES {
            let mut phrases = relation.phrases(Bank::Known, language);
            let fewest = if language == "en" { FEWEST_IN_ENGLISH } else { FEWEST_ELSEWHERE };
            assert!(phrases.len() >= fewest, "{}.{language}: {} phrases", relation.stem(), phrases.len());
            assert!(phrases.iter().all(|phrase| !phrase.trim().is_empty()));
            phrases.sort();
            phrases.dedup();
            assert_eq!(
                phrases.len(),
                relation.phrases(Bank::Known, language).len(),
                "{}.{language}",
                relation.stem()
            );
        }
    }
}

fn assert_floors(relation: Relation) {
    let (_, floors) = FLOORS.into_iter().find(|(floored, _)| *floored == relation).unwrap();
    let mut fallen = Vec::new();
    for (language, floor) in LANGUAGES.into_iter().zip(floors) {
        let outcome = measure(scorer(), Bank::Known, relation, language);
        let name = format!("{}.{language}", relation.stem());
        show(&name, floor, &outcome);
        if outcome.share() < floor {
            fallen.push(format!("{name}: {:.3} < {floor}", outcome.share()));
        }
    }
    assert!(fallen.is_empty(), "{fallen:#?}");
}

fn show(name: &str, floor: f64, outcome: &BankOutcome) {
    eprintln!("{name}: holds in {:.3}, floor {floor}", outcome.share());
    for phrase in outcome.phrases.iter().take(SHOWN).filter(|phrase| !phrase.broken.is_empty()) {
        let examples: Vec<&str> = phrase.broken.iter().take(3).map(String::as_str).collect();
        eprintln!(
            "  {}/{} {:?} (as in {})",
            phrase.broken.len(),
            phrase.tried,
            phrase.phrase,
            examples.join(", ")
        );
    }
    let worst: Vec<String> = outcome
        .worst_samples()
        .into_iter()
        .take(SHOWN)
        .map(|(count, ticket_id)| format!("{ticket_id} ({count})"))
        .collect();
    if !worst.is_empty() {
        eprintln!("  worst samples of {} phrases: {}", outcome.phrases.len(), worst.join(", "));
    }
}
