//! Shares of a limit: one owner, an organization for instance, cannot use all of it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use assay_contracts::ids::OrganizationId;

use crate::runtime::LockExt as _;

/// What each owner uses of a limit, and how much one may use. Clones share the counts.
#[derive(Debug)]
pub struct Shares<K = OrganizationId>(Arc<Inner<K>>);

#[derive(Debug)]
struct Inner<K> {
    limit: usize,
    in_use: Mutex<HashMap<K, usize>>,
}

/// A part of the share of an owner, given back on drop.
#[derive(Debug)]
pub struct ShareInUse<K: Copy + Eq + Hash = OrganizationId> {
    shares: Shares<K>,
    /// `None`: it counts for no owner.
    owner: Option<K>,
    amount: usize,
}

impl<K> Clone for Shares<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Copy + Eq + Hash> Shares<K> {
    /// `limit` for each owner.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Inner { limit, in_use: Mutex::default() }))
    }

    /// Half of `total`, and at least 1, for each owner.
    pub fn half_of(total: usize) -> Self {
        Self::new((total / 2).max(1))
    }

    /// What one owner may use.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Whether an owner uses less than its share at the moment.
    pub fn has_room(&self, owner: K) -> bool {
        self.0.in_use.locked().get(&owner).is_none_or(|used| *used < self.0.limit)
    }

    /// An owner that uses its whole share at the moment.
    pub fn owner_at_limit(&self) -> Option<K> {
        let in_use = self.0.in_use.locked();
        in_use.iter().find(|(_, used)| **used >= self.0.limit).map(|(owner, _)| *owner)
    }

    /// A use of the share of an owner, of 0 for now; without an owner it has no limit.
    pub fn of(&self, owner: Option<K>) -> ShareInUse<K> {
        ShareInUse { shares: self.clone(), owner, amount: 0 }
    }

    /// A use of 1 of the share of an owner; `None` when the owner uses all of it.
    pub fn take_one(&self, owner: K) -> Option<ShareInUse<K>> {
        let mut share = self.of(Some(owner));
        share.add(1).then_some(share)
    }

    /// Whether no owner uses anything.
    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        self.0.in_use.locked().is_empty()
    }
}

impl<K: Copy + Eq + Hash> ShareInUse<K> {
    /// Adds `amount`; `false`, and nothing is added, when the owner would have more than its share. The only use of an owner may be
    /// larger than the share: a large body for instance.
    #[must_use]
    pub fn add(&mut self, amount: usize) -> bool {
        let Some(owner) = self.owner else { return true };
        let mut in_use = self.shares.0.in_use.locked();
        let used = in_use.entry(owner).or_default();
        let is_only_use = *used == self.amount;
        if !is_only_use && *used + amount > self.shares.0.limit {
            return false;
        }
        *used += amount;
        self.amount += amount;
        true
    }
}

impl<K: Copy + Eq + Hash> Drop for ShareInUse<K> {
    fn drop(&mut self) {
        let Some(owner) = self.owner else { return };
        let mut in_use = self.shares.0.in_use.locked();
        if let Some(used) = in_use.get_mut(&owner) {
            *used -= self.amount;
            if *used == 0 {
                in_use.remove(&owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::new_id;

    #[test]
    fn owner_gets_its_share_and_a_single_use_may_be_larger() {
        let shares: Shares = Shares::half_of(10);
        let (greedy, other) = (new_id(), new_id());
        let of = |owner| shares.of(Some(owner));
        let (mut first, mut second, mut third) = (of(greedy), of(greedy), of(other));
        assert!(first.add(4) && second.add(1) && third.add(5));
        assert!(!shares.has_room(greedy) && !second.add(1) && !first.add(1));
        drop(first);
        assert!(second.add(9), "the only use may be larger");
        drop((second, third));
        assert!(shares.of(None).add(100));
        assert!(shares.is_unused());
    }
}
