//! A conversation as the encoder's input: a segment of ids for the start and the subject, then one for each message.
//!
//! ```text
//! ⟨start⟩ ⟨subject⟩ Refund not there · ⟨C⟩ Where is my refund? · ⟨A⟩ It was sent on Monday. · ⟨a day⟩ ⟨C⟩ It came, thank you
//! ```
//!
//! The marker of who speaks stands for the message: the encoder's vector there is what the heads see. Conversations with
//! more than [`MOST_IDS`] ids lose the middle of their longest messages; the first two and the last six messages keep
//! three times as much as those between.

use std::borrow::Cow;

use assay_contracts::conversation::MAX_MESSAGES;
use assay_encoder::Model;

use super::view::Placed;
use crate::transcript::{Role, Transcript, composed};

/// Ids of a conversation, at most. The encoder has positions for 512.
pub(crate) const MOST_IDS: usize = 512;
/// Markers, which are the last ids of the vocabulary, in this order: customer, AI, human, several, subject, and waits.
pub(super) const MARKERS: u32 = 8;
const SUBJECT: u32 = 4;
/// Waits before a message that are marked, in milliseconds, the longest first.
const WAITS: [(i64, u32); 3] = [(86_400_000, 7), (3_600_000, 6), (5 * 60_000, 5)];
/// Bytes of a message at its beginning and at its end that are read; the middle of longer ones is left out.
const READ_BYTES: (usize, usize) = (1_600, 800);
/// Capitals from which on a message may be shouted: order numbers and abbreviations have fewer.
const SHOUTED: usize = 12;
/// Bytes and ids of the subject.
const SUBJECT_BYTES: usize = 600;
const SUBJECT_IDS: usize = 16;
/// Ids for the start, the subject's marker, and a marker and a wait for each message.
const FIXED_IDS: usize = 2;
const IDS_OF_MESSAGE: usize = 2;
/// A message is two where its last paragraph is looked at apart.
const MOST_MESSAGES: usize = 2 * MAX_MESSAGES;
const _: () = assert!(FIXED_IDS + SUBJECT_IDS + IDS_OF_MESSAGE * MOST_MESSAGES <= MOST_IDS);
/// Messages at the beginning and at the end that keep more, and how many times as much.
const KEPT: (usize, usize, usize) = (2, 6, 3);

/// The encoder's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub ids: Vec<u32>,
    /// For each message the place of its marker.
    pub markers: Vec<usize>,
    /// Where each segment ends.
    pub segments: Vec<usize>,
}

impl Layout {
    /// Of messages with these texts.
    pub(super) fn of(encoder: &Model, transcript: &Transcript<'_>, read: &[(Placed, Cow<'_, str>)]) -> Self {
        let tokens = |text: &str| {
            let mut ids = Vec::new();
            encoder.tokenize(text, &mut ids);
            ids
        };
        // A parsed conversation has no more.
        let read = read.get(..MOST_MESSAGES).unwrap_or(read);
        let mut subject = tokens(cut(transcript.subject().unwrap_or_default()));
        subject.truncate(SUBJECT_IDS);
        let texts: Vec<Vec<u32>> = read.iter().map(|(_, text)| tokens(text)).collect();
        let fixed = FIXED_IDS + subject.len() + IDS_OF_MESSAGE * texts.len();
        let limits = limits(&texts, MOST_IDS.saturating_sub(fixed));
        let first_marker = encoder.header().vocabulary as u32 - MARKERS;
        let mut layout =
            Self { ids: vec![encoder.header().bos_id], markers: Vec::new(), segments: Vec::new() };
        if !subject.is_empty() {
            layout.ids.push(first_marker + SUBJECT);
            layout.ids.extend(subject);
        }
        layout.segments.push(layout.ids.len());
        let mut before: Option<i64> = None;
        for (((placed, _), text), limit) in read.iter().zip(&texts).zip(limits) {
            let at = transcript.item(placed.item).map_or(0, |item| item.message.timestamp.as_millis());
            let waited = before.map_or(0, |before| at - before);
            before = Some(at);
            if let Some((_, marker)) = WAITS.iter().find(|(wait, _)| waited >= *wait) {
                layout.ids.push(first_marker + marker);
            }
            layout.markers.push(layout.ids.len());
            layout.ids.push(first_marker + marker_of(placed.role));
            layout.push_without_middle(text, limit);
            layout.segments.push(layout.ids.len());
        }
        layout
    }

    /// Three fifths of what is kept are the beginning.
    fn push_without_middle(&mut self, text: &[u32], limit: usize) {
        if text.len() <= limit {
            self.ids.extend(text);
            return;
        }
        let head = (limit * 3).div_ceil(5);
        let tail = text.len() - (limit - head);
        self.ids.extend(text.iter().take(head).chain(text.iter().skip(tail)));
    }
}

const fn marker_of(role: Role) -> u32 {
    match role {
        Role::Customer => 0,
        Role::Ai => 1,
        Role::Human => 2,
        Role::Mixed | Role::System | Role::Note => 3,
    }
}

/// For each text how many of its ids there is room for: the most that makes all fit.
fn limits(texts: &[Vec<u32>], room: usize) -> Vec<usize> {
    let (first, last, times) = KEPT;
    let share = |at: usize| if at < first || at + last >= texts.len() { times } else { 1 };
    let used = |limit: usize| -> usize {
        texts.iter().enumerate().map(|(at, text)| text.len().min(limit * share(at))).sum()
    };
    let (mut fits, mut too_much) = (0, texts.iter().map(Vec::len).max().unwrap_or(0) + 1);
    while too_much - fits > 1 {
        let middle = usize::midpoint(fits, too_much);
        if used(middle) <= room {
            fits = middle;
        } else {
            too_much = middle;
        }
    }
    (0..texts.len()).map(|at| fits * share(at)).collect()
}

/// The messages with their texts.
pub(super) fn with_texts<'t>(transcript: &'t Transcript<'_>, read: &[Placed]) -> Vec<(Placed, Cow<'t, str>)> {
    read.iter().map(|placed| (*placed, text(transcript, placed.item))).collect()
}

/// The author's own text; of a long one the beginning and the end. What is shouted is read as if it were said.
fn text<'t>(transcript: &'t Transcript<'_>, item: usize) -> Cow<'t, str> {
    let own = transcript.item(item).map(|item| item.own_text()).unwrap_or_default();
    let (head, tail) = READ_BYTES;
    let own = if own.len() <= head + tail {
        own
    } else {
        let (head, tail) = (own.floor_char_boundary(head), own.floor_char_boundary(own.len() - tail));
        Cow::Owned([own.get(..head).unwrap_or(""), own.get(tail..).unwrap_or("")].join("\n"))
    };
    let own = match composed(&own) {
        Cow::Borrowed(_) => own,
        Cow::Owned(composed) => Cow::Owned(composed),
    };
    if is_shouted(&own) { Cow::Owned(own.to_lowercase()) } else { own }
}

/// Whether nearly all letters that could be small are capitals.
fn is_shouted(text: &str) -> bool {
    let (mut capitals, mut small) = (0, 0);
    for character in text.chars() {
        capitals += usize::from(character.is_uppercase());
        small += usize::from(character.is_lowercase());
    }
    capitals >= SHOUTED && capitals > 4 * small
}

fn cut(subject: &str) -> &str {
    subject.get(..subject.floor_char_boundary(SUBJECT_BYTES)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_until_all_fit_and_short_ones_are_whole() {
        let texts: Vec<Vec<u32>> =
            [900, 5, 300, 300, 300, 300, 300, 300, 300, 3].map(|length| vec![7; length]).into();
        let limits = limits(&texts, 400);
        let kept: Vec<usize> =
            texts.iter().zip(&limits).map(|(text, limit)| text.len().min(*limit)).collect();
        assert!(kept.iter().sum::<usize>() <= 400 && kept.iter().sum::<usize>() > 370, "{kept:?}");
        assert_eq!((kept[1], kept[9]), (5, 3));
        assert_eq!(kept[0], 3 * kept[2]);
        assert_eq!(
            super::limits(&texts, 10_000)
                .iter()
                .zip(&texts)
                .filter(|(limit, text)| **limit < text.len())
                .count(),
            0
        );
        assert!(super::limits(&texts, 0).iter().all(|limit| *limit == 0));
    }

    #[test]
    fn beginning_and_end_of_a_long_text_stay() {
        let mut layout = Layout { ids: vec![], markers: vec![], segments: vec![] };
        layout.push_without_middle(&(0..100).collect::<Vec<u32>>(), 10);
        assert_eq!(layout.ids, [0, 1, 2, 3, 4, 5, 96, 97, 98, 99]);
    }
}
