//! The encoder's input, the token ids of a conversation: a segment for the start and the subject, then one for each message.
//!
//! ```text
//! ⟨start⟩ ⟨subject⟩ Refund not there · ⟨C⟩ Where is my refund? · ⟨A⟩ It was sent on Monday. · ⟨a day⟩ ⟨C⟩ It came, thank you
//! ```
//!
//! For each message the heads use the encoder's vector at its role marker and the mean of its segment. Conversations with
//! more than [`MAX_IDS`] ids lose the middle of their longest messages; the limit of the first two and the last six messages
//! is three times the limit of the others.

use std::borrow::Cow;

use assay_contracts::conversation::MAX_MESSAGES;
use assay_encoder::Model;

use super::selection::SelectedMessage;
use crate::transcript::{Role, Transcript, nfc};

/// Maximum token ids of a conversation: the positions of the encoder.
pub(crate) const MAX_IDS: usize = 512;
/// Number of markers, the last ids of the vocabulary, in this order: customer, AI, human, several authors, subject, three
/// waits.
pub(super) const MARKERS: u32 = 8;
const SUBJECT_MARKER: u32 = 4;
/// Waits before a message that are marked, the longest first: milliseconds and marker.
const WAITS: [(i64, u32); 3] = [(24 * 3_600_000, 7), (3_600_000, 6), (5 * 60_000, 5)];
/// Bytes that are kept at the start and at the end of a message; the middle of longer ones is dropped.
const HEAD_BYTES: usize = 1_600;
const TAIL_BYTES: usize = 800;
/// Minimum capitals of an all-caps message: order numbers and abbreviations have fewer.
const MIN_CAPITALS: usize = 12;
/// Maximum bytes and ids of the subject.
const SUBJECT_BYTES: usize = 600;
const SUBJECT_IDS: usize = 16;
/// Ids of the start and of the subject's marker.
const FIXED_IDS: usize = 2;
/// Ids of a message in addition to its text: its marker and a wait.
const IDS_OF_MESSAGE: usize = 2;
/// A message whose last paragraph may be a signature comes as two texts, that paragraph apart (`encoding`).
const MAX_TEXTS: usize = 2 * MAX_MESSAGES;
const _: () = assert!(FIXED_IDS + SUBJECT_IDS + IDS_OF_MESSAGE * MAX_TEXTS <= MAX_IDS);
/// The first and the last messages have a limit that is larger by this factor.
const EDGE_FACTOR: usize = 3;
const FIRST_MESSAGES: usize = 2;
const LAST_MESSAGES: usize = 6;

/// The encoder's input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    pub ids: Vec<u32>,
    /// Position of the marker of each message.
    pub markers: Vec<usize>,
    /// End of each segment in `ids`, the one with the subject first.
    pub segment_ends: Vec<usize>,
}

impl Layout {
    /// Tokenizes and lays out messages with these texts.
    pub(super) fn of(
        encoder: &Model,
        transcript: &Transcript<'_>,
        selection: &[(SelectedMessage, Cow<'_, str>)],
    ) -> Self {
        let tokens = |text: &str| {
            let mut ids = Vec::new();
            encoder.tokenize(text, &mut ids);
            ids
        };
        // A parsed conversation never exceeds this.
        let selection = selection.get(..MAX_TEXTS).unwrap_or(selection);
        let mut subject = tokens(truncate_subject(transcript.subject().unwrap_or_default()));
        subject.truncate(SUBJECT_IDS);
        let texts: Vec<Vec<u32>> = selection.iter().map(|(_, text)| tokens(text)).collect();
        let fixed = FIXED_IDS + subject.len() + IDS_OF_MESSAGE * texts.len();
        let limits = limits(&texts, MAX_IDS.saturating_sub(fixed));
        let first_marker = encoder.header().vocabulary as u32 - MARKERS;
        let mut layout =
            Self { ids: vec![encoder.header().bos_id], markers: Vec::new(), segment_ends: Vec::new() };
        if !subject.is_empty() {
            layout.ids.push(first_marker + SUBJECT_MARKER);
            layout.ids.extend(subject);
        }
        layout.segment_ends.push(layout.ids.len());
        let mut previous: Option<i64> = None;
        for (((selected, _), text), limit) in selection.iter().zip(&texts).zip(limits) {
            let sent_at = transcript.item(selected.item).map_or(0, |item| item.message.timestamp.as_millis());
            let waited = previous.map_or(0, |previous| sent_at - previous);
            previous = Some(sent_at);
            if let Some((_, marker)) = WAITS.iter().find(|(wait, _)| waited >= *wait) {
                layout.ids.push(first_marker + marker);
            }
            layout.markers.push(layout.ids.len());
            layout.ids.push(first_marker + marker_of(selected.role));
            layout.push_without_middle(text, limit);
            layout.segment_ends.push(layout.ids.len());
        }
        layout
    }

    /// Appends at most `limit` ids of the text: of a longer text, three fifths of them from the start and the rest from the
    /// end.
    fn push_without_middle(&mut self, text: &[u32], limit: usize) {
        if text.len() <= limit {
            self.ids.extend(text);
            return;
        }
        let head_length = (limit * 3).div_ceil(5);
        let tail_start = text.len() - (limit - head_length);
        self.ids.extend(text.iter().take(head_length).chain(text.iter().skip(tail_start)));
    }
}

const fn marker_of(role: Role) -> u32 {
    match role {
        Role::Customer => 0,
        Role::Ai => 1,
        Role::Human => 2,
        // Events and notes are not selected.
        Role::Mixed | Role::System | Role::Note => 3,
    }
}

/// Maximum ids of each text, so that all texts fit: binary search for the largest common limit.
fn limits(texts: &[Vec<u32>], room: usize) -> Vec<usize> {
    let is_edge = |at: usize| at < FIRST_MESSAGES || at + LAST_MESSAGES >= texts.len();
    let factor = |at: usize| if is_edge(at) { EDGE_FACTOR } else { 1 };
    let used = |limit: usize| -> usize {
        texts.iter().enumerate().map(|(at, text)| text.len().min(limit * factor(at))).sum()
    };
    let (mut fits, mut exceeds) = (0, texts.iter().map(Vec::len).max().unwrap_or(0) + 1);
    while exceeds - fits > 1 {
        let middle = usize::midpoint(fits, exceeds);
        if used(middle) <= room {
            fits = middle;
        } else {
            exceeds = middle;
        }
    }
    (0..texts.len()).map(|at| fits * factor(at)).collect()
}

/// The messages with their normalised texts.
pub(super) fn with_texts<'t>(
    transcript: &'t Transcript<'_>,
    selection: &[SelectedMessage],
) -> Vec<(SelectedMessage, Cow<'t, str>)> {
    selection.iter().map(|selected| (*selected, normalised_text(transcript, selected.item))).collect()
}

/// The author's own text, in Unicode form C; of a long text the start and the end; all-caps text in lower case.
fn normalised_text<'t>(transcript: &'t Transcript<'_>, item: usize) -> Cow<'t, str> {
    let own = transcript.item(item).map(|item| item.own_text()).unwrap_or_default();
    let own = if own.len() <= HEAD_BYTES + TAIL_BYTES {
        own
    } else {
        let head_end = own.floor_char_boundary(HEAD_BYTES);
        let tail_start = own.floor_char_boundary(own.len() - TAIL_BYTES);
        Cow::Owned([own.get(..head_end).unwrap_or(""), own.get(tail_start..).unwrap_or("")].join("\n"))
    };
    let own = match nfc(&own) {
        Cow::Borrowed(_) => own,
        Cow::Owned(nfc) => Cow::Owned(nfc),
    };
    if is_all_caps(&own) { Cow::Owned(own.to_lowercase()) } else { own }
}

/// Whether nearly all cased letters are capitals.
fn is_all_caps(text: &str) -> bool {
    let (mut capitals, mut small) = (0, 0);
    for character in text.chars() {
        capitals += usize::from(character.is_uppercase());
        small += usize::from(character.is_lowercase());
    }
    capitals >= MIN_CAPITALS && capitals > 4 * small
}

fn truncate_subject(subject: &str) -> &str {
    subject.get(..subject.floor_char_boundary(SUBJECT_BYTES)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_cut_long_messages_and_keep_short_ones() {
        let texts: Vec<Vec<u32>> =
            [900, 5, 300, 300, 300, 300, 300, 300, 300, 3].map(|length| vec![7; length]).into();
        let limits = limits(&texts, 400);
        let kept: Vec<usize> =
            texts.iter().zip(&limits).map(|(text, limit)| text.len().min(*limit)).collect();
        assert!(kept.iter().sum::<usize>() <= 400 && kept.iter().sum::<usize>() > 370, "{kept:?}");
        assert_eq!((kept[1], kept[9]), (5, 3));
        assert_eq!(kept[0], 3 * kept[2]);
        let ample = super::limits(&texts, 10_000);
        assert!(ample.iter().zip(&texts).all(|(limit, text)| *limit >= text.len()));
        assert!(super::limits(&texts, 0).iter().all(|limit| *limit == 0));
    }

    #[test]
    fn middle_of_long_text_is_dropped() {
        let mut layout = Layout { ids: vec![], markers: vec![], segment_ends: vec![] };
        layout.push_without_middle(&(0..100).collect::<Vec<u32>>(), 10);
        assert_eq!(layout.ids, [0, 1, 2, 3, 4, 5, 96, 97, 98, 99]);
    }
}
