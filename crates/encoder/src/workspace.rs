//! Reusable scratch memory of encodings.

/// Scratch memory of [`Model::encode`](crate::Model::encode). Use one per thread; it fits
/// every model and carries no state from one call to the next.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) buffers: Buffers,
    #[cfg(target_arch = "x86_64")]
    pub(crate) u8_activations: Vec<u8>,
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

/// Buffers of attention for one head.
#[derive(Debug, Default)]
pub(crate) struct AttentionBuffers {
    /// `[key blocks, head size, 4]`
    pub(crate) keys: Vec<[f32; 4]>,
    /// `[head size / 4, keys, 4]`
    pub(crate) values: Vec<[f32; 4]>,
    /// `[head size, 16]`
    pub(crate) queries: Vec<[f32; 16]>,
    /// `[keys, 16]`
    pub(crate) scores: Vec<[f32; 16]>,
}

/// Resizes a buffer; its content is unspecified.
pub(crate) fn resize<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) {
    buffer.resize(length, T::default());
}
