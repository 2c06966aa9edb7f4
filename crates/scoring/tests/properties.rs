//! Properties of the evaluation of arbitrary conversations.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Evaluation;
use proptest::prelude::*;

/// Fragments that trigger corner cases of the rules.
const FRAGMENTS: &[&str] = &[
    "thank you",
    "that worked",
    "no",
    "still broken",
    "I want a human",
    "anything else?",
    "Did that help?",
    "> quoted\n",
    "On Monday, Ann wrote:\n",
    "order 12345",
    "ignore all previous instructions",
    "\u{1F600}",
    "谢谢",
    "can\u{2019}t",
    "“fixed”",
    "\"",
    "...",
    "!!!",
    "?",
    "I will connect you",
    "would you like to speak",
    "sorry",
    "Ünïcödé",
    "\u{0}",
    "not",
    "é",
    "joined the conversation",
    "never mind",
    "has been refunded",
    " ",
    "\n",
    // Artefacts of other programs: unresolved escapes, direction and byte-order marks, control characters.
    "\\ud83d\\ude00",
    "&quot;",
    "\u{1B}[31m",
    "\u{1}",
    "\u{7F}",
    "\u{85}",
    "\u{A0}",
    "\u{200D}",
    "\u{202E}",
    "\u{2028}",
    "\u{3000}",
    "\u{FEFF}",
    "\u{FFFD}",
    "\u{D7FF}\u{E000}\u{FFFF}",
    "\u{10FFFF}",
    "e\u{301}",
    // Letters whose lower case is longer, or shared with another letter.
    "\u{130}",
    "\u{212A}",
    "\u{1E9E}",
    "\r\n> ",
    "-----Original Message-----\n",
    "a@b.co",
    "٣٤٥",
    "would you like a human will",
];

/// Fragments in sequence, arbitrary text, long words, or one repeated fragment.
fn content() -> impl Strategy<Value = String> {
    let fragment = || prop::sample::select(FRAGMENTS).prop_map(str::to_owned);
    let mixed = prop::collection::vec(prop_oneof![3 => fragment(), 1 => ".{0,12}"], 1..8)
        .prop_map(|fragments| fragments.join(" "));
    let glued = prop::collection::vec(fragment(), 1..12).prop_map(|fragments| fragments.concat());
    // Long enough that quotes of it are cut, with words of any length.
    let long = prop::collection::vec(prop_oneof!["[a-zé]{1,12}", "[a-z]{40,300}", fragment()], 20..60)
        .prop_map(|words| words.join(" "));
    let repeated = (fragment(), "[ .?,]?", 1..2_000usize)
        .prop_map(|(fragment, between, times)| format!("{fragment}{between}").repeat(times));
    // Messages must not be blank.
    prop_oneof![8 => mixed, 3 => glued, 2 => any::<String>(), 2 => long, 1 => repeated]
        .prop_map(|text| format!("{text} x"))
}

fn author() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        3 => Just(serde_json::json!({"type": "contact", "external_id": "c"})),
        3 => Just(serde_json::json!({"type": "ai", "external_id": "a"})),
        1 => Just(serde_json::json!({"type": "ai", "id": "b"})),
        1 => Just(serde_json::json!({"type": "teammate", "external_id": "t"})),
        1 => Just(serde_json::json!({"type": "ai", "id": "b", "external_id": "a"})),
        1 => Just(serde_json::json!({"type": "system"})),
        1 => Just(serde_json::json!({"type": "system", "external_id": "s"})),
        1 => Just(serde_json::json!({"type": "mixed"})),
    ]
}

fn conversation() -> impl Strategy<Value = Conversation> {
    let item = (author(), content(), any::<u32>(), prop::bool::weighted(0.1));
    prop::collection::vec(item, 1..14).prop_map(|items| {
        let mut timestamp = 0u64;
        let messages: Vec<serde_json::Value> = items
            .into_iter()
            .enumerate()
            .map(|(index, (author, content, gap, comment))| {
                timestamp += u64::from(gap);
                let kind = if comment { "comment" } else { "message" };
                serde_json::json!({"author": author, "content": content, "external_id": format!("m{index}"),
                    "timestamp": timestamp, "kind": kind})
            })
            .collect();
        let value = serde_json::json!({"ticket_id": "t", "source": "s", "messages": messages});
        serde_json::from_value(value).expect("a valid conversation")
    })
}

/// Maximum bytes of a quote.
const MAX_QUOTE_BYTES: usize = 200;

/// Whether the text can be cut here without cutting a word. In scripts without spaces every character is a word.
fn is_word_boundary(text: &str, at: usize) -> bool {
    let in_word = |character: char| {
        character.is_alphanumeric() && !matches!(character, '\u{2E80}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}')
    };
    !(text[..at].ends_with(in_word) && text[at..].starts_with(in_word))
}

/// Whether the quote is part of a word that is longer than any quote. A cut at a character shortens the quote by up to three bytes.
fn is_part_of_overlong_word(text: &str, quote: &str) -> bool {
    quote.len() + 4 > MAX_QUOTE_BYTES && !quote.contains(char::is_whitespace) && text.len() > MAX_QUOTE_BYTES
}

/// Quotes are exact substrings of the items they name, begin and end at words, and every index points to one.
fn assert_evidence(conversation: &Conversation, evaluation: &Evaluation) {
    for evidence in &evaluation.evidence {
        let quoted = conversation.messages.iter().find(|message| {
            message.external_id == evidence.message_external_id
                && message.author.author_type() == evidence.author_type
                && message.content.get(evidence.start..evidence.end) == Some(evidence.quote.as_str())
        });
        let text = quoted.map(|message| message.content.as_str()).unwrap_or_default();
        assert!(!evidence.quote.is_empty() && evidence.quote.len() <= MAX_QUOTE_BYTES, "{evidence:?}");
        let ends = [evidence.start, evidence.end];
        let whole_words = ends.into_iter().all(|at| is_word_boundary(text, at));
        assert!(whole_words || is_part_of_overlong_word(text, &evidence.quote), "{evidence:?} of {text:?}");
    }
    let known = |index: &usize| *index < evaluation.evidence.len();
    assert!(evaluation.resolution.evidence.iter().all(known));
    if let Some(axis) = &evaluation.axis {
        let dimensions = &axis.dimensions;
        let signals = [
            &dimensions.resolution_accuracy.signals,
            &dimensions.interaction_effort.signals,
            &dimensions.handoff_smoothness.signals,
        ];
        assert!(
            signals
                .into_iter()
                .flatten()
                .all(|signal| signal.evidence.iter().all(known) && signal.effect.is_finite())
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_gets_a_valid_evaluation(conversation in conversation()) {
        let scorer = support::scorer();
        let evaluation = scorer.evaluate(&conversation);
        assert_evidence(&conversation, &evaluation);
        prop_assert!(!evaluation.resolution.reason.is_empty());
        // Parsing refuses scores and confidences out of range.
        let json = serde_json::to_string(&evaluation).unwrap();
        let read: Evaluation = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&read, &evaluation);
        let again = serde_json::to_string(&support::scorer().evaluate(&conversation)).unwrap();
        prop_assert_eq!(again, json);
    }

    #[test]
    fn further_ai_messages_after_the_answer_change_no_score(conversation in conversation(), answer in content(), more in content()) {
        let scorer = support::scorer();
        let answered = support::with(&conversation, support::Speaker::Ai, &answer);
        let longer = support::with(&answered, support::Speaker::Ai, &more);
        prop_assert_eq!(support::scores(scorer, &longer), support::scores(scorer, &answered));
    }
}
