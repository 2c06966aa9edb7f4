//! Turns off transparent huge pages, for a process where a small memory footprint matters more than speed.

use nix::sys::prctl::set_thp_disable;

/// The allocator asks for huge pages, and a partly used one is resident as a whole: more than half of the memory of an
/// idle export-worker.
pub fn disable_transparent_huge_pages() {
    // Best effort: a kernel that refuses has no huge pages or enforces them, and the process works either way.
    let _ = set_thp_disable(true);
}
