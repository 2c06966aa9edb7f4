//! What each message does and where the conversation stands at it, by the encoder and its heads.

use std::borrow::Cow;

use assay_encoder::{Model, Workspace};

use super::acts::{Act, MessageActs};
use super::error::ReaderError;
use super::exponential;
use super::layout::{Layout, MARKERS, MOST_IDS, with_texts};
use super::linear::Linear;
use super::view::{Placed, messages_read};
use crate::transcript::{Role, Transcript};

/// What the encoder says of a whole conversation: three scores, then logits of three states, five solvers and four charges.
pub(super) const IMPRESSIONS: usize = 3 + 3 + 5 + 4;
/// Up to this probability of any stand a paragraph takes none.
const NO_STAND: f32 = 0.35;
/// Inner numbers of the head of impressions.
const INNER: usize = 192;
/// What that head sees: the last message, the mean of the customer's, their last one, and the last answer.
const VIEWS: usize = 4;
/// A message is the encoder's vector at its marker, and the mean of those of its segment.
const PARTS: usize = 2;

/// The encoder with its heads.
pub(super) struct MessageReader {
    encoder: Model,
    acts: Linear,
    inner: Linear,
    impression: Linear,
}

impl std::fmt::Debug for MessageReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MessageReader").field("model", &self.encoder.sha256()).finish_non_exhaustive()
    }
}

impl MessageReader {
    /// The tensors `acts.*` and `impression.*` beside the encoder.
    pub(super) fn new(encoder: Model) -> Result<Self, ReaderError> {
        check_encoder(&encoder)?;
        let width = PARTS * encoder.header().hidden;
        Ok(Self {
            acts: Linear::read(&encoder, "acts", width, Act::ALL.len())?,
            inner: Linear::read(&encoder, "impression.inner", VIEWS * width, INNER)?,
            impression: Linear::read(&encoder, "impression", INNER, IMPRESSIONS)?,
            encoder,
        })
    }

    /// Reads the messages of the transcript. A message is read in the light of those before it alone, so later ones change
    /// nothing of it, as long as there is room for all of them.
    pub(super) fn read(&self, transcript: &Transcript<'_>) -> EncodedMessages {
        let mut texts = with_texts(transcript, &messages_read(transcript, transcript.items.len()));
        let mut workspace = Workspace::default();
        self.drop_signatures(transcript, &mut texts, &mut workspace);
        let mut messages = vec![None; transcript.items.len()];
        for ((placed, _), message) in texts.iter().zip(self.encode(transcript, &texts, &mut workspace)) {
            if let Some(slot) = messages.get_mut(placed.item) {
                *slot = Some(message);
            }
        }
        EncodedMessages { messages }
    }

    /// A customer's last paragraph that takes no stand is a signature or a remark, and is not what the message ends with.
    fn drop_signatures(
        &self,
        transcript: &Transcript<'_>,
        texts: &mut [(Placed, Cow<'_, str>)],
        workspace: &mut Workspace,
    ) {
        let ends: Vec<Option<usize>> =
            texts.iter().map(|(placed, text)| last_paragraph(placed.role, text)).collect();
        if ends.iter().all(Option::is_none) {
            return;
        }
        let mut apart = Vec::with_capacity(texts.len() * 2);
        for ((placed, text), end) in texts.iter().zip(&ends) {
            let (before, last) = text.split_at(end.unwrap_or(text.len()));
            apart.push((*placed, Cow::Borrowed(before)));
            if end.is_some() {
                apart.push((*placed, Cow::Borrowed(last)));
            }
        }
        let mut encoded = self.encode(transcript, &apart, workspace).into_iter();
        let stays: Vec<bool> = ends
            .iter()
            .map(|end| {
                let alone = encoded.next();
                let last = if end.is_some() { encoded.next() } else { alone };
                last.is_none_or(|last| {
                    last.acts.strongest(&Act::STANDS).is_none_or(|(_, stand)| stand > NO_STAND)
                })
            })
            .collect();
        drop(apart);
        for (((_, text), end), stays) in texts.iter_mut().zip(ends).zip(stays) {
            if let (Some(end), false) = (end, stays) {
                *text = Cow::Owned(text.get(..end).unwrap_or_default().to_owned());
            }
        }
    }

    /// What each of these messages is to the encoder.
    fn encode(
        &self,
        transcript: &Transcript<'_>,
        texts: &[(Placed, Cow<'_, str>)],
        workspace: &mut Workspace,
    ) -> Vec<EncodedMessage> {
        let layout = Layout::of(&self.encoder, transcript, texts);
        // The ids are the model's own, and never more than it has positions: nothing is refused.
        let rows = self.encoder.encode(&layout.ids, &layout.segments, workspace);
        debug_assert!(rows.is_ok(), "{rows:?}");
        let vectors = message_vectors(&rows.unwrap_or_default(), &layout, self.encoder.header().hidden);
        let message = |((placed, _), vector): (&(Placed, Cow<'_, str>), Vec<f32>)| EncodedMessage {
            acts: self.acts_of(placed.role, &vector),
            vector,
        };
        texts.iter().zip(vectors).map(message).collect()
    }

    fn acts_of(&self, role: Role, vector: &[f32]) -> MessageActs {
        let mut probabilities = [0.0; Act::ALL.len()];
        let logits = self.acts.apply(vector);
        for ((probability, logit), act) in probabilities.iter_mut().zip(logits).zip(Act::ALL) {
            let can = match role {
                Role::Customer => act.by_customer(),
                Role::Ai | Role::Human => !act.by_customer(),
                Role::Mixed => true,
                Role::System | Role::Note => false,
            };
            if can {
                *probability = (1.0 / (1.0 + exponential(-f64::from(logit)))) as f32;
            }
        }
        MessageActs::new(probabilities)
    }

    /// What the conversation was like up to the last of the messages `read`.
    pub(super) fn impression(&self, read: &[Placed], encoded: &EncodedMessages) -> Vec<f32> {
        let width = PARTS * self.encoder.header().hidden;
        let of = |keep: fn(Role) -> bool| read.iter().filter(move |placed| keep(placed.role));
        let is_customer = |role: Role| role == Role::Customer;
        let mut seen = Vec::with_capacity(VIEWS * width);
        seen.extend(encoded.mean(read.iter().rev().take(1), width));
        seen.extend(encoded.mean(of(is_customer), width));
        seen.extend(encoded.mean(of(is_customer).rev().take(1), width));
        seen.extend(encoded.mean(of(Role::speaks_to_customer).rev().take(1), width));
        let mut inner = self.inner.apply(&seen);
        for value in &mut inner {
            *value = value.max(0.0);
        }
        self.impression.apply(&inner)
    }
}

/// Where the last paragraph of a customer's message begins, if there is one that asks nothing.
fn last_paragraph(role: Role, text: &str) -> Option<usize> {
    let text = text.trim_end();
    let blank = |(start, line): &(usize, &str)| *start > 0 && line.trim().is_empty();
    let starts = text.split_inclusive('\n').scan(0, |next, line| {
        let start = *next;
        *next += line.len();
        Some((start, line))
    });
    let (end, _) = starts.filter(blank).last()?;
    let (before, last) = text.split_at(end);
    (role == Role::Customer && !before.trim().is_empty() && !last.contains(['?', '？'])).then_some(end)
}

/// Whether the encoder has room for a conversation and the markers.
pub(crate) fn check_encoder(encoder: &Model) -> Result<(), ReaderError> {
    let header = encoder.header();
    if header.max_positions < MOST_IDS {
        return Err(ReaderError::Tensor {
            name: "embedding.position".to_owned(),
            expected: vec![MOST_IDS],
            found: vec![header.max_positions],
        });
    }
    if header.vocabulary <= MARKERS as usize {
        return Err(ReaderError::Tensor {
            name: "tokenizer.scores".to_owned(),
            expected: vec![MARKERS as usize + 1],
            found: vec![header.vocabulary],
        });
    }
    Ok(())
}

/// For each message the row at its marker, and the mean of the rows of its segment.
fn message_vectors(rows: &[f32], layout: &Layout, hidden: usize) -> Vec<Vec<f32>> {
    let segments = layout.segments.iter().zip(layout.segments.iter().skip(1));
    let row = |at: usize| rows.get(at * hidden..(at + 1) * hidden).unwrap_or_default();
    segments
        .zip(&layout.markers)
        .map(|((start, end), marker)| {
            let mut mean = vec![0.0f32; hidden];
            for at in *start..*end {
                for (sum, value) in mean.iter_mut().zip(row(at)) {
                    *sum += value;
                }
            }
            for sum in &mut mean {
                *sum /= (end - start).max(1) as f32;
            }
            [row(*marker), &mean].concat()
        })
        .collect()
}

/// What was read of each item; nothing of those that are not read.
pub(super) struct EncodedMessages {
    messages: Vec<Option<EncodedMessage>>,
}

#[derive(Clone)]
struct EncodedMessage {
    acts: MessageActs,
    vector: Vec<f32>,
}

impl EncodedMessages {
    /// What these messages do.
    pub(super) fn acts(&self, read: &[Placed]) -> Vec<MessageActs> {
        read.iter()
            .map(|placed| self.message(placed).map_or_else(MessageActs::default, |message| message.acts))
            .collect()
    }

    fn message(&self, placed: &Placed) -> Option<&EncodedMessage> {
        self.messages.get(placed.item)?.as_ref()
    }

    /// The mean of the vectors of these messages; zeros where there are none.
    fn mean<'p>(&self, read: impl Iterator<Item = &'p Placed>, width: usize) -> Vec<f32> {
        let (mut sums, mut count) = (vec![0.0f32; width], 0.0f32);
        for message in read.filter_map(|placed| self.message(placed)) {
            count += 1.0;
            for (sum, value) in sums.iter_mut().zip(&message.vector) {
                *sum += value;
            }
        }
        for sum in &mut sums {
            *sum /= count.max(1.0);
        }
        sums
    }
}
