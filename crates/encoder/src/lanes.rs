//! Lanes: numbers that are computed in parallel.

/// Their number. `hidden`, `feed_forward` and the head size are multiples of it.
pub(crate) const LANES: usize = 16;

/// Sixteen numbers in one line of the cache: AVX-512 reads it at once.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Lanes(pub(crate) [f32; LANES]);
