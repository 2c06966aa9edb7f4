//! Memory in small pages, for a process whose memory is to be small rather than fast.

use nix::sys::prctl::set_thp_disable;

/// Takes no huge pages from now on: the allocator asks for them, and one that is used in part is resident as a whole. Of
/// an idle export-worker they are more than half.
pub fn do_without() {
    // A kernel that cannot do without has none or insists on them: there is nothing to be done about it, and the process
    // works all the same.
    let _ = set_thp_disable(true);
}
