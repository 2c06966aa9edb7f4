//! Reasons to trust an evaluation less: flags, a factor for confidences, and whether a human should review.

use assay_contracts::conversation::MAX_MESSAGES;
use assay_contracts::evaluation::{Flag, ResolutionStatus};

use crate::language::Language;
use crate::transcript::{Role, Transcript};

/// Minimum words of the customer; with fewer the conversation counts as short.
const MIN_CUSTOMER_WORDS: u32 = 4;

/// How far the evaluation of a transcript can be trusted.
#[derive(Debug)]
pub(crate) struct Reliability {
    /// Flags of the evaluation, in the order of their declaration.
    pub flags: Vec<Flag>,
}

impl Reliability {
    /// Collects the flags.
    pub(crate) fn of(transcript: &Transcript<'_>, language: &Language) -> Self {
        let words: u32 = transcript.customer_items().map(|item| item.word_count).sum();
        let has_customer = transcript.has_role(Role::Customer);
        let cases = [
            (transcript.has_injection(), Flag::PossiblePromptInjection),
            (!language.is_covered(), Flag::UnsupportedLanguage),
            (
                has_customer && (words < MIN_CUSTOMER_WORDS || transcript.answers.is_empty()),
                Flag::ShortConversation,
            ),
            (transcript.has_role(Role::Mixed), Flag::MixedAuthors),
            (is_truncated(transcript), Flag::TruncatedTranscript),
            (!transcript.has_role(Role::Ai), Flag::NoAiMessages),
            (!has_customer, Flag::NoCustomerMessages),
        ];
        let flags = cases.into_iter().filter(|(holds, _)| *holds).map(|(_, flag)| flag).collect();
        Self { flags }
    }

    /// Factor for all confidences of the evaluation.
    pub(crate) fn confidence_factor(&self) -> f64 {
        self.flags.iter().map(|flag| flag_factor(*flag)).product()
    }

    /// Whether the transcript is too unreliable to decide a charge without human review. Text addressed to an evaluator
    /// does not count where the issue is unresolved: otherwise an agent could write it to get `review` instead of
    /// `disputed`.
    pub(crate) fn needs_review(&self, status: ResolutionStatus) -> bool {
        self.flags.iter().any(|flag| match flag {
            Flag::PossiblePromptInjection => status != ResolutionStatus::NotResolved,
            Flag::UnsupportedLanguage
            | Flag::MixedAuthors
            | Flag::TruncatedTranscript
            | Flag::NoCustomerMessages => true,
            Flag::ShortConversation | Flag::NoAiMessages | Flag::JudgeDisagrees => false,
        })
    }
}

/// Factor for confidences under a flag. Set by hand.
const fn flag_factor(flag: Flag) -> f64 {
    match flag {
        Flag::UnsupportedLanguage | Flag::MixedAuthors => 0.6,
        Flag::PossiblePromptInjection | Flag::TruncatedTranscript => 0.75,
        Flag::ShortConversation => 0.8,
        Flag::NoCustomerMessages => 0.3,
        Flag::NoAiMessages | Flag::JudgeDisagrees => 1.0,
    }
}

/// Whether the transcript may be truncated: it has the maximum number of items.
fn is_truncated(transcript: &Transcript<'_>) -> bool {
    transcript.items.len() >= MAX_MESSAGES
}
