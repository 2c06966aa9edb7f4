//! Seeded random numbers for tests: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
//! A seed gives the same numbers in the same order.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 for the bound 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of the values, which must not be empty.
    pub fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    /// `true` with probability `1 / times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A duration in this range, of whole milliseconds.
    pub fn between(&mut self, from: Duration, to: Duration) -> Duration {
        from + Duration::from_millis(self.below((to - from).as_millis() as usize) as u64)
    }

    /// A random permutation (Fisher-Yates).
    #[must_use]
    pub fn shuffled<T>(mut self, mut values: Vec<T>) -> Vec<T> {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
        values
    }
}
