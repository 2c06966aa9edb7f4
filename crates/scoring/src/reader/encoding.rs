//! Step 1: the encoder and its heads predict the acts of each message and an impression of the conversation.

use std::borrow::Cow;

use assay_encoder::{Model, Workspace};

use super::acts::{Act, MessageActs};
use super::error::ReaderError;
use super::exp;
use super::layout::{Layout, MARKERS, MAX_IDS, with_texts};
use super::linear::Linear;
use super::selection::{SelectedMessage, selected_messages};
use crate::transcript::{Role, Transcript};

/// Outputs of the impression head: three scores, then logits of three statuses, five solvers and four charges.
pub(super) const IMPRESSION_OUTPUTS: usize = 3 + 3 + 5 + 4;
/// Maximum probability of any [stance](Act::STANCES) in a paragraph that counts as a signature.
const MAX_STANCE_OF_SIGNATURE: f32 = 0.35;
/// Maximum bytes of a greeting ("Dear Sir or Madam,").
const MAX_GREETING_BYTES: usize = 24;
/// Hidden units of the impression head.
const HIDDEN_UNITS: usize = 192;
/// Inputs of the impression head: the last message, the mean of the customer's messages, the customer's last message, and
/// the last answer.
const POOLED_VECTORS: usize = 4;
/// Vectors of a message: the one at its marker, and the mean of its segment.
const VECTORS_PER_MESSAGE: usize = 2;

/// The encoder with its heads.
pub(super) struct MessageReader {
    encoder: Model,
    acts_head: Linear,
    /// Between the inputs and [`Self::impression_head`].
    hidden_layer: Linear,
    impression_head: Linear,
}

impl std::fmt::Debug for MessageReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("MessageReader").field("model", &self.encoder.sha256()).finish_non_exhaustive()
    }
}

impl MessageReader {
    /// Reads the heads from the tensors `acts.*` and `impression.*`, which are in the encoder's model file.
    pub(super) fn new(encoder: Model) -> Result<Self, ReaderError> {
        check_encoder(&encoder)?;
        let width = VECTORS_PER_MESSAGE * encoder.header().hidden;
        Ok(Self {
            acts_head: Linear::read(&encoder, "acts", width, Act::ALL.len())?,
            hidden_layer: Linear::read(&encoder, "impression.inner", POOLED_VECTORS * width, HIDDEN_UNITS)?,
            impression_head: Linear::read(&encoder, "impression", HIDDEN_UNITS, IMPRESSION_OUTPUTS)?,
            encoder,
        })
    }

    /// Encodes the messages of the transcript. A message is encoded with its predecessors only, so later messages do
    /// not change it as long as all fit.
    pub(super) fn read(&self, transcript: &Transcript<'_>) -> EncodedMessages {
        let mut texts = with_texts(transcript, &selected_messages(transcript, transcript.items.len()));
        let mut workspace = Workspace::default();
        self.drop_signatures(transcript, &mut texts, &mut workspace);
        let mut messages = vec![None; transcript.items.len()];
        for ((selected, _), message) in texts.iter().zip(self.encode(transcript, &texts, &mut workspace)) {
            if let Some(slot) = messages.get_mut(selected.item) {
                *slot = Some(message);
            }
        }
        EncodedMessages { messages }
    }

    /// Drops the last paragraph of a customer's message if it asks nothing and shows no stance: then it is a signature or a remark.
    fn drop_signatures(
        &self,
        transcript: &Transcript<'_>,
        texts: &mut [(SelectedMessage, Cow<'_, str>)],
        workspace: &mut Workspace,
    ) {
        let last_starts: Vec<Option<usize>> =
            texts.iter().map(|(selected, text)| last_paragraph_start(transcript, selected, text)).collect();
        if last_starts.iter().all(Option::is_none) {
            return;
        }
        let mut split_texts = Vec::with_capacity(texts.len() * 2);
        for ((selected, text), last_start) in texts.iter().zip(&last_starts) {
            let (before, last) = text.split_at(last_start.unwrap_or(text.len()));
            split_texts.push((*selected, Cow::Borrowed(before)));
            if last_start.is_some() {
                split_texts.push((*selected, Cow::Borrowed(last)));
            }
        }
        let mut encoded = self.encode(transcript, &split_texts, workspace).into_iter();
        let is_read = |paragraph: EncodedMessage| {
            let strongest = paragraph.acts.strongest(Act::STANCES);
            paragraph.acts.has(Act::Ask)
                || strongest.is_none_or(|(_, stance)| stance > MAX_STANCE_OF_SIGNATURE)
        };
        let keeps: Vec<bool> = last_starts
            .iter()
            .map(|last_start| {
                // The text before the last paragraph, or a text that was not split.
                encoded.next();
                let last_paragraph = last_start.and_then(|_| encoded.next());
                last_paragraph.is_none_or(is_read)
            })
            .collect();
        drop(split_texts);
        for (((_, text), last_start), keep) in texts.iter_mut().zip(last_starts).zip(keeps) {
            if let (Some(last_start), false) = (last_start, keep) {
                *text = Cow::Owned(text.get(..last_start).unwrap_or_default().to_owned());
            }
        }
    }

    /// Vector and acts of each message.
    fn encode(
        &self,
        transcript: &Transcript<'_>,
        texts: &[(SelectedMessage, Cow<'_, str>)],
        workspace: &mut Workspace,
    ) -> Vec<EncodedMessage> {
        let layout = Layout::of(&self.encoder, transcript, texts);
        // The ids come from the model's own tokenizer and fit its positions: encoding cannot fail.
        let rows = self.encoder.encode(&layout.ids, &layout.segment_ends, workspace);
        debug_assert!(rows.is_ok(), "{rows:?}");
        let vectors = message_vectors(&rows.unwrap_or_default(), &layout, self.encoder.header().hidden);
        let message = |((selected, _), vector): (&(SelectedMessage, Cow<'_, str>), Vec<f32>)| {
            EncodedMessage { acts: self.acts_of(selected.role, &vector), vector }
        };
        texts.iter().zip(vectors).map(message).collect()
    }

    fn acts_of(&self, role: Role, vector: &[f32]) -> MessageActs {
        let mut probabilities = [0.0; Act::ALL.len()];
        let logits = self.acts_head.apply(vector);
        for ((probability, logit), act) in probabilities.iter_mut().zip(logits).zip(Act::ALL) {
            let is_allowed = match role {
                Role::Customer => act.is_by_customer(),
                Role::Ai | Role::Human => !act.is_by_customer(),
                Role::Mixed => true,
                Role::System | Role::Note => false,
            };
            if is_allowed {
                *probability = (1.0 / (1.0 + exp(-f64::from(logit)))) as f32;
            }
        }
        MessageActs::new(probabilities)
    }

    /// The impression of the conversation up to the last selected message.
    pub(super) fn impression(&self, selection: &[SelectedMessage], encoded: &EncodedMessages) -> Vec<f32> {
        let width = VECTORS_PER_MESSAGE * self.encoder.header().hidden;
        let of_role = |keep: fn(Role) -> bool| selection.iter().filter(move |selected| keep(selected.role));
        let is_customer = |role: Role| role == Role::Customer;
        let mut inputs = Vec::with_capacity(POOLED_VECTORS * width);
        inputs.extend(encoded.mean(selection.iter().rev().take(1), width));
        inputs.extend(encoded.mean(of_role(is_customer), width));
        inputs.extend(encoded.mean(of_role(is_customer).rev().take(1), width));
        inputs.extend(encoded.mean(of_role(Role::ends_customer_turn).rev().take(1), width));
        let mut hidden_units = self.hidden_layer.apply(&inputs);
        for value in &mut hidden_units {
            *value = value.max(0.0);
        }
        self.impression_head.apply(&hidden_units)
    }
}

/// Start of the last paragraph of a customer's message, if it has several and the last one asks nothing. In the customer's first
/// message there must be more than a greeting before it: below a greeting stands the request itself.
fn last_paragraph_start(
    transcript: &Transcript<'_>,
    selected: &SelectedMessage,
    text: &str,
) -> Option<usize> {
    let text = text.trim_end();
    let blank = |(start, line): &(usize, &str)| *start > 0 && line.trim().is_empty();
    let starts = text.split_inclusive('\n').scan(0, |next, line| {
        let start = *next;
        *next += line.len();
        Some((start, line))
    });
    let (last_start, _) = starts.filter(blank).last()?;
    let (before, last) = text.split_at(last_start);
    let is_first = transcript.customer.first() == Some(&selected.item);
    let is_below_text = before.trim().len() > if is_first { MAX_GREETING_BYTES } else { 0 };
    (selected.role == Role::Customer && is_below_text && !last.contains(['?', '？'])).then_some(last_start)
}

/// Checks that the encoder has enough positions and ids for the markers.
pub(crate) fn check_encoder(encoder: &Model) -> Result<(), ReaderError> {
    let header = encoder.header();
    if header.max_positions < MAX_IDS {
        return Err(ReaderError::Tensor {
            name: "embedding.position".to_owned(),
            expected: vec![MAX_IDS],
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
    let bounds = layout.segment_ends.iter().zip(layout.segment_ends.iter().skip(1));
    let row = |at: usize| rows.get(at * hidden..(at + 1) * hidden).unwrap_or_default();
    bounds
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

/// Encoded messages by item; `None` for items that were not selected.
pub(super) struct EncodedMessages {
    messages: Vec<Option<EncodedMessage>>,
}

#[derive(Clone)]
struct EncodedMessage {
    acts: MessageActs,
    vector: Vec<f32>,
}

impl EncodedMessages {
    /// Acts of the selected messages.
    pub(super) fn acts(&self, selection: &[SelectedMessage]) -> Vec<MessageActs> {
        selection
            .iter()
            .map(|selected| self.message(selected).map_or_else(MessageActs::default, |message| message.acts))
            .collect()
    }

    fn message(&self, selected: &SelectedMessage) -> Option<&EncodedMessage> {
        self.messages.get(selected.item)?.as_ref()
    }

    /// The mean of the vectors of these messages; zeros without messages.
    fn mean<'p>(&self, selection: impl Iterator<Item = &'p SelectedMessage>, width: usize) -> Vec<f32> {
        let (mut sums, mut count) = (vec![0.0f32; width], 0.0f32);
        for message in selection.filter_map(|selected| self.message(selected)) {
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
