//! Chance by seed: SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). A seed gives
//! the same faults in the same order; what happens to run when one strikes is the machine's.

use std::time::Duration;

/// A generator with a fixed course.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// One of several.
    pub fn one_of<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.below(several.len())]
    }

    /// `true` once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// A span between the two, in milliseconds.
    pub fn millis(&mut self, from: usize, to: usize) -> Duration {
        Duration::from_millis((from + self.below(to - from)) as u64)
    }

    /// The same in another order.
    pub fn shuffled<T>(mut self, mut several: Vec<T>) -> Vec<T> {
        for last in (1..several.len()).rev() {
            several.swap(last, self.below(last + 1));
        }
        several
    }
}
