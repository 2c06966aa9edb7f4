//! Reusable scratch memory of encodings.

use crate::lanes::Lanes;

/// Scratch memory of [`Model::encode`](crate::Model::encode). Use one per thread; it fits
/// every model and carries no state from one call to the next.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) buffers: Buffers,
    /// Quantised inputs of a linear layer, for the kernels that multiply bytes (x86-64 only).
    #[cfg(target_arch = "x86_64")]
    pub(crate) u8_activations: Vec<u8>,
    /// The same, for the kernels that multiply 16-bit integers.
    pub(crate) i16_activations: Vec<i16>,
}

/// Buffers of the layers, resized at each use: `[tokens, …]`, row-major.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The vectors between layers.
    pub(crate) hidden: Vec<f32>,
    pub(crate) queries: Vec<f32>,
    /// Key, then value, of each token.
    pub(crate) keys_values: Vec<f32>,
    /// Output of attention.
    pub(crate) context: Vec<f32>,
    /// Inner activations of the feed-forward part.
    pub(crate) inner: Vec<f32>,
    /// Residual update of a layer.
    pub(crate) update: Vec<f32>,
    /// The scale of each quantised row.
    pub(crate) scales: Vec<f32>,
    pub(crate) attention: AttentionBuffers,
}

/// Buffers of attention for one head. Keys are interleaved in blocks of four tokens, values in blocks of four dimensions (`BLOCK` of
/// [`attention`](crate::forward)); sixteen queries are computed at once, one in each lane (`LANES`).
#[derive(Debug, Default)]
pub(crate) struct AttentionBuffers {
    /// `[blocks of tokens, head size, token in its block]`
    pub(crate) keys: Vec<[f32; 4]>,
    /// `[blocks of dimensions, tokens, dimension in its block]`
    pub(crate) values: Vec<[f32; 4]>,
    /// `[head size]`
    pub(crate) queries: Vec<Lanes>,
    /// `[tokens]`
    pub(crate) scores: Vec<Lanes>,
    /// `[head size]`
    pub(crate) context: Vec<Lanes>,
}

/// Resizes a buffer; its content is unspecified.
pub(crate) fn resize<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) {
    buffer.resize(length, T::default());
}
