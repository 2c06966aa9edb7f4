//! Returns freed memory to the system.

use std::hint::black_box;
use std::time::Duration;

use assay_platform::runtime::{Phase, Tasks};

const INTERVAL: Duration = Duration::from_secs(5);
/// A block of this size has pages of its own, which are freed with it.
const BLOCK_BYTES: usize = 4 * 1024 * 1024;

/// Allocates and frees a block from time to time, because mimalloc returns memory that is free for a second only when some
/// thread frees pages. An idle gateway would keep the pages of ended threads, for example after hostile bodies.
pub fn spawn_task(tasks: &mut Tasks) {
    tasks.spawn_periodic(Phase::Background, "freed memory", INTERVAL, (), |()| async {
        drop(black_box(Vec::<u8>::with_capacity(BLOCK_BYTES)));
    });
}
