//! What the scorer does not know: reasons to trust an evaluation less, and to have a person look.

use assay_contracts::conversation::MAX_MESSAGES;
use assay_contracts::evaluation::Flag;

use crate::transcript::{Role, Transcript};

/// A customer who wrote fewer words has hardly said anything.
const FEW_WORDS: u32 = 4;

/// Reasons to doubt, found in the transcript.
#[derive(Debug)]
pub(crate) struct Doubts {
    /// For the evaluation, in the order of their names' declaration.
    pub flags: Vec<Flag>,
}

impl Doubts {
    /// Collects the reasons.
    pub(crate) fn of(transcript: &Transcript<'_>) -> Self {
        let words: u32 = transcript.customer_items().map(|item| item.words).sum();
        let has_customer = transcript.has_role(Role::Customer);
        let cases = [
            (transcript.has_injection(), Flag::PossiblePromptInjection),
            (!transcript.language.is_covered(), Flag::UnsupportedLanguage),
            (has_customer && (words < FEW_WORDS || transcript.answers.is_empty()), Flag::ShortConversation),
            (transcript.has_role(Role::Mixed), Flag::MixedAuthors),
            (is_cut(transcript), Flag::TruncatedTranscript),
            (!transcript.has_role(Role::Ai), Flag::NoAiMessages),
            (!has_customer, Flag::NoCustomerMessages),
        ];
        let flags = cases.into_iter().filter(|(holds, _)| *holds).map(|(_, flag)| flag).collect();
        Self { flags }
    }

    /// The share of its confidence that an evaluation keeps.
    pub(crate) fn factor(&self) -> f64 {
        self.flags.iter().map(|flag| keeps(*flag)).product()
    }

    /// Whether the words of the transcript cannot be relied on, so that a person should look.
    pub(crate) fn calls_for_review(&self) -> bool {
        self.flags.iter().any(|flag| {
            matches!(
                flag,
                Flag::PossiblePromptInjection
                    | Flag::UnsupportedLanguage
                    | Flag::MixedAuthors
                    | Flag::TruncatedTranscript
                    | Flag::NoCustomerMessages
            )
        })
    }
}

/// How much of its confidence an evaluation keeps under a flag.
const fn keeps(flag: Flag) -> f64 {
    match flag {
        Flag::UnsupportedLanguage | Flag::MixedAuthors => 0.6,
        Flag::PossiblePromptInjection | Flag::TruncatedTranscript => 0.75,
        Flag::ShortConversation => 0.8,
        Flag::NoCustomerMessages => 0.3,
        Flag::NoAiMessages | Flag::JudgeDisagrees => 1.0,
    }
}

/// Whether the transcript may end in the middle: it holds as many items as an import may.
fn is_cut(transcript: &Transcript<'_>) -> bool {
    transcript.items.len() >= MAX_MESSAGES
}
