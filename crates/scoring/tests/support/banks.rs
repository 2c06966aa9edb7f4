//! Phrase banks: adds their phrases to samples of their language and measures how often the relation holds.

use std::collections::BTreeMap;
use std::path::Path;

use assay_contracts::conversation::{Author, Conversation, MessageKind};
use assay_scoring::Scorer;

use super::variants::Variant;
use super::{Speaker, all_samples, golden, read, with};

/// The languages with banks.
pub const LANGUAGES: [&str; 6] = ["en", "es", "de", "fr", "pt", "zh"];

/// Languages of samples for which there is no bank.
const WITHOUT_BANKS: [&str; 7] = ["it", "nl", "pl", "ja", "ru", "tr", "ko"];

/// The only non-English sample outside the golden folder.
const SPANISH_SAMPLE: &str = "another-language";

/// Variants are measured on one sample in this many, because the phrase matters, not the conversation.
const SAMPLE_EVERY: usize = 40;
/// Variants are measured on one phrase in this many.
const PHRASE_EVERY: usize = 5;

/// Samples per phrase; different phrases get different samples.
const SAMPLES_PER_PHRASE: usize = 2;

/// Maximum samples of a language.
const MAX_SAMPLES: usize = 30;

/// Maximum difference of equal scores: they are rounded to tenths.
const ROUNDING: f64 = 0.05;

/// Maximum change of a score by a neutral text.
const MAX_NEUTRAL_CHANGE: f64 = 0.25;

/// A collection of phrases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bank {
    /// Phrases that the reader may be fitted on (`tests/metamorphic/README.md`).
    Known,
    /// Phrases that nothing is fitted on and no developer looks at: they measure generalisation.
    HeldOut,
}

impl Bank {
    const fn folder(self) -> &'static str {
        match self {
            Self::Known => "metamorphic",
            Self::HeldOut => "metamorphic_held_out",
        }
    }
}

/// A change to a conversation and the required change of the scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    Rejections,
    Sarcasm,
    HumanRequests,
    ComplaintRepetitions,
    Confirmations,
    AgentClaims,
    AgentInjections,
    CustomerInjections,
    SystemNotes,
    NeutralAdditions,
}

impl Relation {
    /// Stem of its file names.
    pub const fn stem(self) -> &'static str {
        match self {
            Self::Rejections => "rejections",
            Self::Sarcasm => "sarcasm",
            Self::HumanRequests => "human_requests",
            Self::ComplaintRepetitions => "complaint_repetitions",
            Self::Confirmations => "confirmations",
            Self::AgentClaims => "agent_claims",
            Self::AgentInjections => "agent_injections",
            Self::CustomerInjections => "customer_injections",
            Self::SystemNotes => "system_notes",
            Self::NeutralAdditions => "neutral_additions",
        }
    }

    /// The phrases of a language.
    pub fn phrases(self, bank: Bank, language: &str) -> Vec<String> {
        let file = format!("tests/{}/{}.{language}.txt", bank.folder(), self.stem());
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        text.lines().map(|line| line.replace("\\n", "\n")).collect()
    }

    fn apply(self, sample: &Conversation, phrase: &str) -> Conversation {
        match self {
            Self::AgentClaims | Self::AgentInjections => with_same_author(sample, Speaker::Ai, phrase),
            Self::SystemNotes => with(sample, Speaker::System, phrase),
            Self::NeutralAdditions => below_last_message(sample, phrase),
            Self::ComplaintRepetitions => {
                with_same_author(sample, Speaker::Customer, &format!("{phrase} {}", first_request(sample)))
            }
            Self::Rejections
            | Self::Sarcasm
            | Self::HumanRequests
            | Self::Confirmations
            | Self::CustomerInjections => with_same_author(sample, Speaker::Customer, phrase),
        }
    }

    fn holds(self, before: ComparedValues, after: ComparedValues) -> bool {
        let (accuracy, effort) = (after.accuracy - before.accuracy, after.effort - before.effort);
        match self {
            Self::Rejections | Self::Sarcasm | Self::HumanRequests | Self::ComplaintRepetitions => {
                accuracy < -ROUNDING || before.accuracy <= 1.0
            }
            Self::Confirmations => accuracy > ROUNDING || before.accuracy >= 5.0 || before.confirmed,
            Self::AgentClaims | Self::AgentInjections | Self::CustomerInjections => {
                accuracy <= ROUNDING && effort <= ROUNDING
            }
            Self::SystemNotes | Self::NeutralAdditions => {
                accuracy.abs() <= MAX_NEUTRAL_CHANGE && effort.abs() <= MAX_NEUTRAL_CHANGE
            }
        }
    }
}

/// Values that the relations compare.
#[derive(Debug, Clone, Copy)]
struct ComparedValues {
    accuracy: f64,
    effort: f64,
    confirmed: bool,
}

/// `None` where AXIS does not apply.
fn compared_values(scorer: &Scorer, conversation: &Conversation) -> Option<ComparedValues> {
    let evaluation = scorer.evaluate(conversation);
    let dimensions = &evaluation.axis.as_ref()?.dimensions;
    Some(ComparedValues {
        accuracy: dimensions.resolution_accuracy.score.value(),
        effort: dimensions.interaction_effort.score.value(),
        confirmed: evaluation.resolution.customer_confirmed,
    })
}

/// Result of one phrase.
#[derive(Debug)]
pub struct PhraseOutcome {
    pub phrase: String,
    pub tried: usize,
    /// Tickets for which the relation fails.
    pub broken: Vec<String>,
}

/// Result of one bank.
#[derive(Debug)]
pub struct BankOutcome {
    /// The worst phrase first.
    pub phrases: Vec<PhraseOutcome>,
}

impl BankOutcome {
    /// Share of phrases and samples for which the relation holds.
    pub fn share(&self) -> f64 {
        let tried: usize = self.phrases.iter().map(|phrase| phrase.tried).sum();
        let broken: usize = self.phrases.iter().map(|phrase| phrase.broken.len()).sum();
        assert!(tried > 0, "nothing was tried");
        (tried - broken) as f64 / tried as f64
    }

    /// Tickets with the most failing phrases, the worst first.
    pub fn worst_samples(&self) -> Vec<(usize, &str)> {
        let mut broken: BTreeMap<&str, usize> = BTreeMap::new();
        for ticket_id in self.phrases.iter().flat_map(|phrase| &phrase.broken) {
            *broken.entry(ticket_id).or_default() += 1;
        }
        let mut worst: Vec<(usize, &str)> =
            broken.into_iter().map(|(ticket_id, count)| (count, ticket_id)).collect();
        worst.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        worst
    }
}

/// Adds every phrase of a bank to a few samples of its language that have AXIS.
pub fn measure(scorer: &Scorer, bank: Bank, relation: Relation, language: &str) -> BankOutcome {
    let samples: Vec<(Conversation, ComparedValues)> = samples_in(language)
        .into_iter()
        .filter_map(|sample| compared_values(scorer, &sample).map(|before| (sample, before)))
        .take(MAX_SAMPLES)
        .collect();
    assert!(samples.len() >= 5, "too few samples in {language}");
    let outcome = |(at, phrase): (usize, String)| {
        let tried = samples.iter().cycle().skip(at * SAMPLES_PER_PHRASE).take(SAMPLES_PER_PHRASE);
        let breaks = |(sample, before): &(Conversation, ComparedValues)| {
            let after = compared_values(scorer, &relation.apply(sample, &phrase)).unwrap();
            (!relation.holds(*before, after)).then(|| sample.ticket_id.clone())
        };
        PhraseOutcome { broken: tried.filter_map(breaks).collect(), tried: SAMPLES_PER_PHRASE, phrase }
    };
    let mut phrases: Vec<PhraseOutcome> =
        relation.phrases(bank, language).into_iter().enumerate().map(outcome).collect();
    phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.broken.len()));
    BankOutcome { phrases }
}

/// Measures a variant on the English phrases and samples for which the relation holds without it.
pub fn measure_variant(scorer: &Scorer, relation: Relation, variant: Variant) -> BankOutcome {
    let samples: Vec<(Conversation, ComparedValues)> = samples_in("en")
        .into_iter()
        .step_by(SAMPLE_EVERY)
        .filter_map(|sample| compared_values(scorer, &sample).map(|before| (sample, before)))
        .collect();
    let holds = |(sample, before): &(Conversation, ComparedValues), text: &str| {
        relation.holds(*before, compared_values(scorer, &relation.apply(sample, text)).unwrap())
    };
    let outcome = |phrase: String| {
        let plain: Vec<_> = samples.iter().filter(|sample| holds(sample, &phrase)).collect();
        let broken = plain.iter().filter(|sample| !holds(sample, &variant.apply(&sample.0, &phrase)));
        let broken = broken.map(|(sample, _)| sample.ticket_id.clone()).collect();
        PhraseOutcome { broken, tried: plain.len(), phrase }
    };
    let mut phrases: Vec<PhraseOutcome> =
        relation.phrases(Bank::Known, "en").into_iter().step_by(PHRASE_EVERY).map(outcome).collect();
    phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.broken.len()));
    BankOutcome { phrases }
}

/// Samples of a language: the id of a golden conversation has the language after the number, or none for English.
fn samples_in(language: &str) -> Vec<Conversation> {
    let golden = read(&golden("conversations.jsonl")).into_iter();
    let golden = golden.map(|sample| (golden_language(&sample.ticket_id), sample));
    let others = all_samples().into_iter();
    let others = others.map(|sample| (if sample.ticket_id == SPANISH_SAMPLE { "es" } else { "en" }, sample));
    golden.chain(others).filter(|(found, _)| *found == language).map(|(_, sample)| sample).collect()
}

fn golden_language(ticket_id: &str) -> &'static str {
    let named = ticket_id.split('-').nth(2).unwrap();
    let known = LANGUAGES.into_iter().chain(WITHOUT_BANKS);
    known.into_iter().find(|language| *language == named).unwrap_or("en")
}

fn first_request(sample: &Conversation) -> &str {
    let mut messages = sample.messages.iter();
    let first = messages.find(|message| matches!(message.author, Author::Contact { .. }));
    &first.unwrap().content
}

/// One more message by the customer or the AI agent that wrote before.
fn with_same_author(sample: &Conversation, speaker: Speaker, phrase: &str) -> Conversation {
    let mut longer = with(sample, speaker, phrase);
    let author = longer.messages.last().unwrap().author.author_type();
    let same = sample.messages.iter().rfind(|message| message.author.author_type() == author).unwrap();
    longer.messages.last_mut().unwrap().author = same.author.clone();
    longer
}

fn below_last_message(sample: &Conversation, phrase: &str) -> Conversation {
    let mut signed = sample.clone();
    let last = signed.messages.iter_mut().rfind(|message| {
        matches!(message.author, Author::Contact { .. }) && message.kind == MessageKind::Message
    });
    let last = last.unwrap();
    last.content = format!("{}\n\n{phrase}", last.content);
    signed
}
