//! The share of this worker's slots that one organization may occupy. A slot runs one claimed job, which waits for the read
//! model and then writes its file.

use assay_platform::web::Shares;

/// Half of the slots, but at least `parallel`, the number of files that are written at once; `waiting` slots are additional ones.
/// Since the share is half or more, at most one organization occupies it while a slot is free.
pub(super) fn slot_shares(parallel: usize, waiting: usize) -> Shares {
    Shares::new((parallel + waiting).div_ceil(2).max(parallel))
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn organization_leaves_half_of_the_slots() {
        // An organization may occupy 9 of 2 + 16 slots.
        let shares = slot_shares(2, 16);
        let (greedy, other) = (new_id(), new_id());
        let mut occupied: Vec<_> = (0..8).map(|_| shares.take_one(greedy)).collect();
        assert_eq!(shares.owner_at_limit(), None);
        occupied.push(shares.take_one(greedy));
        occupied.extend((0..8).map(|_| shares.take_one(other)));
        assert!(occupied.iter().all(Option::is_some));
        assert_eq!(shares.owner_at_limit(), Some(greedy));
        drop(occupied);
        assert_eq!(shares.owner_at_limit(), None);
    }

    #[test]
    fn single_organization_may_write_all_files() {
        for (parallel, waiting) in [(40, 16), (2, 0), (1, 0)] {
            let shares = slot_shares(parallel, waiting);
            let organization = new_id();
            let mut occupied: Vec<_> = (1..parallel).map(|_| shares.take_one(organization)).collect();
            assert_eq!(shares.owner_at_limit(), None, "{parallel} and {waiting}");
            occupied.push(shares.take_one(organization));
            assert_eq!(shares.owner_at_limit(), Some(organization), "{parallel} and {waiting}");
        }
    }
}
