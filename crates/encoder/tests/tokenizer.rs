//! Tokenization, and robustness against arbitrary texts and ids.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use assay_encoder::{EncodeError, Model, Workspace};
use proptest::prelude::*;

use self::support::{Sizes, Writer};

/// [`Writer`] gives each piece the score −1 − id / 10: fewer pieces win, then those with smaller ids. Its table of replacements has
/// the no-break and the ideographic space as a space, and the ligature U+FB01 as "fi".
const PIECES: [&str; 20] = [
    "", "<unk>", "▁", "▁a", "a", "aa", "aaaa", "b", "ab", "▁the", "é", "e", "我", "的", "我的", "👍", "fi",
    "c", "d", "<s>",
];
const UNKNOWN: u32 = 1;

/// Ids 20 to 23 are markers: in the vocabulary, but no pieces.
static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let sizes = Sizes { hidden: 32, heads: 2, feed_forward: 48, layers: 1, vocabulary: 24, positions: 16 };
    Model::parse(&Writer::random(sizes, 3, &PIECES).bytes()).unwrap()
});

fn tokenize(text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    MODEL.tokenize(text, &mut ids);
    ids
}

fn pieces(text: &str) -> Vec<&'static str> {
    tokenize(text).into_iter().map(|id| PIECES[id as usize]).collect()
}

#[test]
fn segmentation_has_highest_score() {
    let cases: [(&str, &[&str]); 12] = [
        ("the", &["▁the"]),
        ("a", &["▁a"]),
        ("ac", &["▁a", "c"]),
        ("the ac", &["▁the", "▁a", "c"]),
        ("é", &["▁", "é"]),
        ("我的 a", &["▁", "我的", "▁a"]),
        ("👍", &["▁", "👍"]),
        ("the我👍é", &["▁the", "我", "👍", "é"]),
        ("\u{fb01}", &["▁", "fi"]),
        ("", &[]),
        (" \t\r\n\u{a0}\u{3000}\u{0}", &[]),
        ("  a\n\na  ", &["▁a", "▁a"]),
    ];
    for (text, expected) in cases {
        assert_eq!(pieces(text), expected, "{text:?}");
    }
}

#[test]
fn adjacent_unknown_characters_are_one_id() {
    assert_eq!(tokenize("Ж"), [2, UNKNOWN]);
    assert_eq!(tokenize("ЖЖЖ語a"), [2, UNKNOWN, 4]);
    assert_eq!(tokenize("Ж Ж"), [2, UNKNOWN, 2, UNKNOWN]);
}

#[test]
fn tokenize_appends_ids() {
    let mut ids = vec![UNKNOWN];
    MODEL.tokenize("Жa", &mut ids);
    assert_eq!(ids, [UNKNOWN, 2, UNKNOWN, 4]);
}

#[test]
fn tokenization_takes_linear_time() {
    for text in ["a".repeat(100_000), "Ж".repeat(50_000), " ".repeat(100_000), "👍我".repeat(14_000)] {
        let start = Instant::now();
        tokenize(&text);
        assert!(start.elapsed() < Duration::from_secs(1), "{:?} for {:.10}", start.elapsed(), text);
    }
}

#[test]
fn invalid_ids_and_segments_are_refused() {
    let encode = |ids: &[u32]| {
        let segment_ends: Vec<usize> = (1..=ids.len()).collect();
        MODEL.encode(ids, &segment_ends, &mut Workspace::default())
    };
    assert_eq!(encode(&[0; 17]), Err(EncodeError::TooLong { found: 17, limit: 16 }));
    assert_eq!(encode(&[0, 24]), Err(EncodeError::UnknownId { id: 24, vocabulary: 24 }));
    assert_eq!(encode(&[]), Ok(vec![]));
    for segment_ends in [&[][..], &[1], &[0, 2], &[2, 2], &[1, 3]] {
        let found = MODEL.encode(&[0, 1], segment_ends, &mut Workspace::default());
        assert_eq!(found, Err(EncodeError::Segments { length: 2 }), "{segment_ends:?}");
    }
    // `encode` accepts markers, which no text gives.
    assert_eq!(encode(&[0, 23]).unwrap().len(), 2 * 32);
}

proptest! {
    #[test]
    fn any_text_gives_ids_of_the_vocabulary(text in any::<String>()) {
        let ids = tokenize(&text);
        // A character becomes at most three: a metaspace before it and "fi", the longest replacement in `MODEL`'s table.
        prop_assert!(ids.len() <= 3 * text.chars().count());
        prop_assert!(ids.iter().all(|&id| (1..20).contains(&id)));
    }

    #[test]
    fn surrounding_spaces_are_ignored(text in "[ab Ж我é\n]{0,40}") {
        prop_assert_eq!(tokenize(&format!(" \n{text}\t ")), tokenize(&text));
    }

    #[test]
    fn any_ids_are_encoded_or_refused(ids in prop::collection::vec(0_u32..26, 0..18)) {
        let segment_ends: Vec<usize> = (1..=ids.len()).collect();
        let vectors = MODEL.encode(&ids, &segment_ends, &mut Workspace::default());
        prop_assert_eq!(vectors.is_ok(), ids.len() <= 16 && ids.iter().all(|&id| id < 24));
        if let Ok(vectors) = vectors {
            prop_assert_eq!(vectors.len(), ids.len() * 32);
            prop_assert!(vectors.iter().all(|value| value.is_finite()));
        }
    }
}
