//! Variants of a phrase: other forms with the same meaning, as mail clients and phones produce them.

use assay_contracts::conversation::{Author, Conversation};

/// Changes of form that do not change the meaning.
#[derive(Debug, Clone, Copy)]
pub enum Variant {
    /// Between a greeting and a signature.
    Letter,
    /// In capitals.
    Capitals,
    /// Above the last message of the AI agent, quoted as mail programs do.
    Reply,
    /// After an unrelated sentence.
    Story,
    /// Without punctuation.
    Bare,
    /// With typographic apostrophes and no-break spaces.
    Typography,
    /// With doubled blanks.
    Blanks,
    /// With hard line breaks, as mail programs set them.
    Wrapped,
}

impl Variant {
    /// Every variant.
    pub const ALL: [Self; 8] = [
        Self::Letter,
        Self::Capitals,
        Self::Reply,
        Self::Story,
        Self::Bare,
        Self::Typography,
        Self::Blanks,
        Self::Wrapped,
    ];

    /// The phrase in this variant, as the customer of a conversation would send it.
    pub fn apply(self, sample: &Conversation, phrase: &str) -> String {
        match self {
            Self::Letter => format!("Hi,\n\n{phrase}\n\nRegards,\nR. Achterberg"),
            Self::Capitals => phrase.to_uppercase(),
            Self::Reply => format!("{phrase}\n\nOn Tue, 4 Mar 2025, Support wrote:\n{}", quoted(sample)),
            Self::Story => format!("I am at my desk with the window open. {phrase}"),
            Self::Bare => phrase.replace(['.', ',', '!', ';', ':'], ""),
            Self::Typography => phrase.replace('\'', "\u{2019}").replace(' ', "\u{a0}"),
            Self::Blanks => phrase.replace(' ', "  "),
            Self::Wrapped => wrapped(phrase),
        }
    }
}

/// Three words a line.
fn wrapped(phrase: &str) -> String {
    let words: Vec<&str> = phrase.split(' ').collect();
    let lines: Vec<String> = words.chunks(3).map(|words| words.join(" ")).collect();
    lines.join("\n")
}

/// The last message of the AI agent, each line with the prefix `> `.
fn quoted(sample: &Conversation) -> String {
    let written = sample.messages.iter().rfind(|message| matches!(message.author, Author::Ai { .. }));
    written.unwrap().content.lines().map(|line| format!("> {line}\n")).collect()
}
