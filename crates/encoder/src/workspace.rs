//! Scratch memory of an encoding, which the next one can use again.

/// Scratch memory of [`Model::encode`](crate::Model::encode). One for each thread that encodes; it holds nothing that a
/// caller could want, and fits every model.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) buffers: Buffers,
    #[cfg(target_arch = "x86_64")]
    pub(crate) unsigned_bytes: Vec<u8>,
    pub(crate) words: Vec<i16>,
}

/// What the layers write on, sized anew at each use: `[tokens, …]`, row after row.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    /// The vectors between layers.
    pub(crate) hidden: Vec<f32>,
    pub(crate) queries: Vec<f32>,
    /// Key and value of each token, one behind the other.
    pub(crate) keys_values: Vec<f32>,
    /// What attention found.
    pub(crate) context: Vec<f32>,
    /// Inside of the feed-forward part.
    pub(crate) inner: Vec<f32>,
    /// What a layer adds to its input.
    pub(crate) update: Vec<f32>,
    /// The scale of each quantised row.
    pub(crate) scales: Vec<f32>,
    pub(crate) attention: AttentionBuffers,
}

/// What attention writes on for one head.
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

/// Sizes a buffer without promising what is in it.
pub(crate) fn resize<T: Copy + Default>(buffer: &mut Vec<T>, length: usize) {
    buffer.resize(length, T::default());
}
