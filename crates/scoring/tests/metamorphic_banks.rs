//! Metamorphic relations on phrase banks: for each bank the share of phrases and samples for which the relation holds.
//!
//! `cargo nextest run -p assay-scoring --test metamorphic_banks --no-capture` shows the worst phrases of each bank.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it measured"
)]

mod support;

use support::banks::{Bank, BankOutcome, LANGUAGES, Relation, measure, measure_variant};
use support::scorer;
use support::variants::Variant;

/// Minimum phrases of an English bank.
const MIN_ENGLISH_PHRASES: usize = 30;
/// Minimum phrases of a bank in another language.
const MIN_OTHER_PHRASES: usize = 8;
/// Number of worst phrases that are printed.
const SHOWN: usize = 12;

/// Shares measured with the model that ships, rounded down; one for each of [`LANGUAGES`]. May only be raised, except with
/// another model file: ADR 25 then says which fell, and why it ships.
const FLOORS: [(Relation, [f64; 6]); 10] = [
    (Relation::Rejections, [1.0, 0.95, 1.0, 1.0, 1.0, 1.0]),
    (Relation::Sarcasm, [0.97, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::HumanRequests, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::ComplaintRepetitions, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::Confirmations, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::AgentClaims, [1.0, 1.0, 1.0, 0.93, 1.0, 1.0]),
    (Relation::AgentInjections, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::CustomerInjections, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::SystemNotes, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::NeutralAdditions, [0.89, 0.81, 0.81, 0.68, 0.75, 0.68]),
];

/// Floors for the held-out banks.
const HELD_OUT_FLOORS: [(Relation, [f64; 6]); 10] = [
    (Relation::Rejections, [0.97, 0.96, 0.93, 0.9, 1.0, 0.9]),
    (Relation::Sarcasm, [0.95, 0.96, 0.93, 0.9, 1.0, 0.93]),
    (Relation::HumanRequests, [1.0, 1.0, 0.96, 0.96, 1.0, 1.0]),
    (Relation::ComplaintRepetitions, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::Confirmations, [0.96, 1.0, 0.93, 0.86, 0.93, 0.93]),
    (Relation::AgentClaims, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::AgentInjections, [0.98, 1.0, 1.0, 1.0, 0.96, 1.0]),
    (Relation::CustomerInjections, [0.9, 0.9, 0.73, 0.73, 0.83, 0.9]),
    (Relation::SystemNotes, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::NeutralAdditions, [0.84, 0.76, 0.76, 0.66, 0.6, 0.76]),
];

/// Floors for the share of passing English phrases that also pass in a variant; one for each of [`Variant::ALL`]. When more
/// plain phrases pass, a floor may be measured again and lowered.
const VARIANT_FLOORS: [(Relation, [f64; 8]); 5] = [
    (Relation::Rejections, [0.97, 0.95, 1.0, 0.95, 0.95, 1.0, 1.0, 1.0]),
    (Relation::Sarcasm, [1.0, 0.95, 1.0, 0.92, 1.0, 1.0, 1.0, 1.0]),
    (Relation::HumanRequests, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::Confirmations, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
    (Relation::CustomerInjections, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
];

/// A test for each relation: they run side by side.
macro_rules! relations_reach_their_floors {
    ($($name:ident: $relation:ident,)+) => {
        $(
            #[test]
            fn $name() {
                assert_floors(Relation::$relation);
            }
        )+
    };
}

relations_reach_their_floors! {
    rejections_lower_resolution_accuracy: Rejections,
    sarcasm_lowers_resolution_accuracy: Sarcasm,
    human_requests_lower_resolution_accuracy: HumanRequests,
    repeated_requests_lower_resolution_accuracy: ComplaintRepetitions,
    confirmations_raise_resolution_accuracy: Confirmations,
    agent_claims_raise_no_score: AgentClaims,
    agent_injections_raise_no_score: AgentInjections,
    customer_injections_raise_no_score: CustomerInjections,
    system_notes_change_no_score: SystemNotes,
    neutral_additions_change_no_score: NeutralAdditions,
}

/// Prints shares only, so that nobody tunes the reader to single phrases.
#[test]
fn held_out_phrases_reach_their_floors() {
    let measured = HELD_OUT_FLOORS.into_iter().flat_map(|(relation, floors)| {
        LANGUAGES.into_iter().zip(floors).map(move |(language, floor)| {
            let outcome = measure(scorer(), Bank::HeldOut, relation, language);
            (format!("held out, {}.{language}", relation.stem()), floor, outcome)
        })
    });
    assert_none_below(measured, |_| ());
}

#[test]
fn variants_of_phrases_reach_their_floors() {
    let measured = VARIANT_FLOORS.into_iter().flat_map(|(relation, floors)| {
        Variant::ALL.into_iter().zip(floors).map(move |(variant, floor)| {
            let outcome = measure_variant(scorer(), relation, variant);
            (format!("{}.{variant:?}", relation.stem()), floor, outcome)
        })
    });
    assert_none_below(measured, show_worst);
}

#[test]
fn banks_are_large_enough_without_duplicates() {
    for (relation, _) in FLOORS {
        for language in LANGUAGES {
            let mut phrases = relation.phrases(Bank::Known, language);
            let fewest = if language == "en" { MIN_ENGLISH_PHRASES } else { MIN_OTHER_PHRASES };
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
    let (_, floors) = FLOORS.into_iter().find(|(known, _)| *known == relation).unwrap();
    let measured = LANGUAGES.into_iter().zip(floors).map(|(language, floor)| {
        let outcome = measure(scorer(), Bank::Known, relation, language);
        (format!("{}.{language}", relation.stem()), floor, outcome)
    });
    assert_none_below(measured, show_worst);
}

fn assert_none_below(
    measured: impl Iterator<Item = (String, f64, BankOutcome)>,
    show_details: fn(&BankOutcome),
) {
    let below_floor = measured.filter_map(|(name, floor, outcome)| {
        let line = format!("{name}: holds in {:.3}, floor {floor}", outcome.share());
        eprintln!("{line}");
        show_details(&outcome);
        (outcome.share() < floor).then_some(line)
    });
    let below_floor: Vec<String> = below_floor.collect();
    assert!(below_floor.is_empty(), "{below_floor:#?}");
}

fn show_worst(outcome: &BankOutcome) {
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
