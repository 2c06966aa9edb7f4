//! The forward pass: embeddings, then layers of attention and feed-forward, each followed by layer normalisation.
//!
//! All of it but the matrix multiplication is inlined into `encode` of each kernel, which has the kernel's target features.

mod attention;
mod floating_point;
mod kernel;

use std::borrow::Cow;

use self::attention::{AttentionInput, Span, attend};
use self::floating_point::{normalise_rows, quantise_row};
pub use self::kernel::Kernel;
pub(crate) use self::kernel::{Arithmetic, Matrix, Portable};
#[cfg(target_arch = "x86_64")]
pub(crate) use self::kernel::{Avx2, Avx512Vnni};

use crate::workspace::{Buffers, Workspace, resize};

/// Weights of the transformer, with matrices packed for the arithmetic `A`.
pub(crate) struct Transformer<A: Arithmetic> {
    pub(crate) arithmetic: A,
    pub(crate) embedding: Embedding,
    pub(crate) layers: Vec<Layer<A>>,
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    pub(crate) epsilon: f32,
}

pub(crate) struct Embedding {
    /// Signed 8-bit integers, a row for each id.
    pub(crate) words: Cow<'static, [u8]>,
    /// Quantisation scale of each row.
    pub(crate) scales: Vec<f32>,
    /// A row for each position.
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: Norm,
}

pub(crate) struct Layer<A: Arithmetic> {
    /// Rows for queries, then keys, then values.
    pub(crate) qkv: Matrix<A>,
    /// Output projection of attention.
    pub(crate) output: Matrix<A>,
    /// Feed-forward part: to its inner width.
    pub(crate) up: Matrix<A>,
    /// Feed-forward part: back to the hidden width.
    pub(crate) down: Matrix<A>,
    pub(crate) attention_norm: Norm,
    pub(crate) output_norm: Norm,
}

pub(crate) struct Norm {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
}

/// Validated ids: all in the vocabulary, at most as many as positions.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) ids: &'a [u32],
    /// End of each segment, ascending; the last one is the number of ids.
    pub(crate) segment_ends: &'a [usize],
}

impl Input<'_> {
    /// Attention spans: the queries of a segment attend to everything up to its end.
    fn spans(&self) -> Vec<Span> {
        let starts = std::iter::once(&0).chain(self.segment_ends);
        let span = |(start, end): (&usize, &usize)| Span { queries: end - start, tokens: *end };
        starts.zip(self.segment_ends).map(span).collect()
    }
}

/// The vectors of the last layer.
#[inline(always)]
pub(crate) fn encode<A: Arithmetic>(
    transformer: &Transformer<A>,
    input: Input<'_>,
    workspace: &mut Workspace,
) -> Vec<f32> {
    let mut activations = std::mem::take(A::activations(workspace));
    let buffers = &mut workspace.buffers;
    embed(transformer, input.ids, &mut buffers.hidden);
    let spans = input.spans();
    for layer in &transformer.layers {
        run_layer(transformer, layer, &spans, buffers, &mut activations);
    }
    let vectors = buffers.hidden.clone();
    *A::activations(workspace) = activations;
    vectors
}

#[inline(always)]
fn embed<A: Arithmetic>(transformer: &Transformer<A>, ids: &[u32], hidden: &mut Vec<f32>) {
    let (width, embedding) = (transformer.hidden, &transformer.embedding);
    resize(hidden, ids.len() * width);
    let rows = hidden.chunks_exact_mut(width).zip(embedding.positions.chunks_exact(width));
    for ((row, position), &id) in rows.zip(ids) {
        let id = id as usize;
        let (word, scale) = (&embedding.words[id * width..][..width], embedding.scales[id]);
        for ((value, word), position) in row.iter_mut().zip(word).zip(position) {
            *value = f32::from(word.cast_signed()) * scale + position;
        }
    }
    normalise_rows(hidden, &embedding.norm.weight, &embedding.norm.bias, transformer.epsilon);
}

#[inline(always)]
fn run_layer<A: Arithmetic>(
    transformer: &Transformer<A>,
    layer: &Layer<A>,
    spans: &[Span],
    buffers: &mut Buffers,
    activations: &mut Vec<A::Activation>,
) {
    let (arithmetic, hidden, epsilon) = (transformer.arithmetic, transformer.hidden, transformer.epsilon);
    let Buffers { hidden: rows, queries, keys_values, context, inner, update, scales, attention } = buffers;

    quantise::<A>(rows, hidden, activations, scales);
    arithmetic.multiply(&layer.qkv, hidden..3 * hidden, activations, scales, keys_values);
    arithmetic.multiply(&layer.qkv, 0..hidden, activations, scales, queries);
    resize(context, rows.len());
    let heads = transformer.heads;
    attend(arithmetic, AttentionInput { hidden, heads, queries, keys_values, spans }, attention, context);

    quantise::<A>(context, hidden, activations, scales);
    arithmetic.multiply(&layer.output, 0..hidden, activations, scales, update);
    add(rows, update);
    normalise_rows(rows, &layer.attention_norm.weight, &layer.attention_norm.bias, epsilon);

    quantise::<A>(rows, hidden, activations, scales);
    let width = layer.up.outputs();
    arithmetic.multiply(&layer.up, 0..width, activations, scales, inner);
    arithmetic.activate(inner);
    quantise::<A>(inner, width, activations, scales);
    arithmetic.multiply(&layer.down, 0..hidden, activations, scales, update);
    add(rows, update);
    normalise_rows(rows, &layer.output_norm.weight, &layer.output_norm.bias, epsilon);
}

/// Quantises rows of `width` numbers, padded to a multiple of the kernel's `ROWS`.
#[inline(always)]
fn quantise<A: Arithmetic>(
    rows: &[f32],
    width: usize,
    activations: &mut Vec<A::Activation>,
    scales: &mut Vec<f32>,
) {
    let count = rows.len() / width;
    resize(activations, count.next_multiple_of(A::ROWS) * width);
    resize(scales, count);
    let quantised = activations.chunks_exact_mut(width).zip(scales.iter_mut());
    for (row, (quantised, scale)) in rows.chunks_exact(width).zip(quantised) {
        *scale = quantise_row(row, quantised, A::activation);
    }
}

#[inline(always)]
fn add(rows: &mut [f32], update: &[f32]) {
    for (value, update) in rows.iter_mut().zip(update) {
        *value += update;
    }
}
