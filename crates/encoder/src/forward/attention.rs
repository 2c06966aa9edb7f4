//! Block-causal attention of one layer: a query attends to the tokens of its own segment and of earlier ones.
//!
//! Sixteen queries are computed in parallel lanes, so that sums and maxima of scores never cross lanes.

use super::floating_point::BLOCK;
use super::kernel::Arithmetic;
use crate::lanes::{LANES, Lanes};
use crate::workspace::{AttentionBuffers, resize};

/// Input of attention.
#[derive(Clone, Copy)]
pub(crate) struct AttentionInput<'a> {
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    /// `hidden` numbers for each query.
    pub(crate) queries: &'a [f32],
    /// For each token `hidden` numbers of its key, then `hidden` numbers of its value.
    pub(crate) keys_values: &'a [f32],
    pub(crate) spans: &'a [Span],
}

/// Adjacent queries that attend to the same tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Number of queries.
    pub(crate) queries: usize,
    /// Number of tokens, from the first, that they attend to.
    pub(crate) tokens: usize,
}

/// Writes the output of attention into `context`: for each query a row of `hidden` numbers, one head beside the other.
#[inline(always)]
pub(crate) fn attend<A: Arithmetic>(
    arithmetic: A,
    input: AttentionInput<'_>,
    buffers: &mut AttentionBuffers,
    context: &mut [f32],
) {
    let (hidden, head_size) = (input.hidden, input.hidden / input.heads);
    let tokens = input.keys_values.len() / (2 * hidden);
    resize(&mut buffers.queries, head_size);
    resize(&mut buffers.context, head_size);
    resize(&mut buffers.scores, tokens.next_multiple_of(BLOCK));
    for head_start in (0..hidden).step_by(head_size) {
        pack_keys(input, head_start, &mut buffers.keys);
        pack_values(input, head_start, &mut buffers.values);
        let (mut queries, mut context) = (input.queries, &mut *context);
        for span in input.spans {
            let (queries_of_span, later_queries) = queries.split_at(span.queries * hidden);
            let (context_of_span, later_context) = context.split_at_mut(span.queries * hidden);
            (queries, context) = (later_queries, later_context);
            let groups =
                queries_of_span.chunks(LANES * hidden).zip(context_of_span.chunks_mut(LANES * hidden));
            for (queries, context) in groups {
                pack_queries(queries, hidden, head_start, &mut buffers.queries);
                attend_head(arithmetic, span.tokens, tokens, buffers);
                write_context(&buffers.context, context, hidden, head_start);
            }
        }
    }
}

/// One head for up to sixteen queries that attend to the first `seen` of `tokens`.
#[inline(always)]
fn attend_head<A: Arithmetic>(arithmetic: A, seen: usize, tokens: usize, buffers: &mut AttentionBuffers) {
    let AttentionBuffers { keys, values, queries, scores, context } = buffers;
    let head_size = queries.len();
    let scores = &mut scores[..seen.next_multiple_of(BLOCK)];
    arithmetic.multiply_blocks(keys, head_size, queries, scores);
    let scores = &mut scores[..seen];
    let Lanes(factors) = arithmetic.softmax(scores);
    // Only the first `seen` values of each block count: a product ends with the shorter side.
    arithmetic.multiply_blocks(values, tokens, scores, context);
    for Lanes(sums) in context {
        for (sum, factor) in sums.iter_mut().zip(&factors) {
            *sum *= factor;
        }
    }
}

/// The keys of one head, interleaved by four tokens; padded with zeros.
#[inline(always)]
fn pack_keys(input: AttentionInput<'_>, head_start: usize, keys: &mut Vec<[f32; BLOCK]>) {
    let (hidden, head_size) = (input.hidden, input.hidden / input.heads);
    let tokens = input.keys_values.len() / (2 * hidden);
    keys.clear();
    keys.resize(tokens.div_ceil(BLOCK) * head_size, [0.0; BLOCK]);
    for (block, packed) in input.keys_values.chunks(BLOCK * 2 * hidden).zip(keys.chunks_exact_mut(head_size))
    {
        for (position, token) in block.chunks_exact(2 * hidden).enumerate() {
            for (dimension, key) in packed.iter_mut().zip(&token[head_start..head_start + head_size]) {
                dimension[position] = *key;
            }
        }
    }
}

/// The values of one head: for each block of four dimensions, those of all tokens.
#[inline(always)]
fn pack_values(input: AttentionInput<'_>, head_start: usize, values: &mut Vec<[f32; BLOCK]>) {
    let (hidden, head_size) = (input.hidden, input.hidden / input.heads);
    let tokens = input.keys_values.len() / (2 * hidden);
    resize(values, tokens * head_size / BLOCK);
    for (token, row) in input.keys_values.chunks_exact(2 * hidden).enumerate() {
        let value = row[hidden + head_start..hidden + head_start + head_size].as_chunks::<BLOCK>().0;
        for (block, value) in value.iter().enumerate() {
            values[block * tokens + token] = *value;
        }
    }
}

/// Up to sixteen queries of one head, transposed into lanes and divided by the root of the head size. Lanes without a query keep old
/// numbers; [`write_context`] skips them.
#[inline(always)]
fn pack_queries(rows: &[f32], hidden: usize, head_start: usize, queries: &mut [Lanes]) {
    let factor = 1.0 / (queries.len() as f32).sqrt();
    for (lane, row) in rows.chunks_exact(hidden).enumerate() {
        for (Lanes(queries), value) in queries.iter_mut().zip(&row[head_start..]) {
            queries[lane] = value * factor;
        }
    }
}

/// Writes the output of one head: in each row of `hidden` numbers the columns from `head_start`.
#[inline(always)]
fn write_context(lanes: &[Lanes], context: &mut [f32], hidden: usize, head_start: usize) {
    for (lane, row) in context.chunks_exact_mut(hidden).enumerate() {
        for (value, Lanes(lanes)) in row[head_start..].iter_mut().zip(lanes) {
            *value = lanes[lane];
        }
    }
}
