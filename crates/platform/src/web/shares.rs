//! Shares of a limit: no organization uses all of it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use assay_contracts::ids::OrganizationId;

use crate::runtime::LockExt as _;

/// What each organization uses of a limit, and how much one may use. Clones share the counts.
#[derive(Debug, Clone)]
pub struct Shares(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: usize,
    in_use: Mutex<HashMap<OrganizationId, usize>>,
}

/// A part of the share of an organization, given back on drop.
#[derive(Debug)]
pub struct ShareInUse {
    shares: Shares,
    /// `None`: it counts for no organization.
    organization: Option<OrganizationId>,
    amount: usize,
}

impl Shares {
    /// Half of `total`, and at least 1, for each organization.
    pub fn half_of(total: usize) -> Self {
        Self(Arc::new(Inner { limit: (total / 2).max(1), in_use: Mutex::default() }))
    }

    /// What one organization may use.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// Nothing yet of the share of an organization; without one everything is granted.
    pub fn of(&self, organization: Option<OrganizationId>) -> ShareInUse {
        ShareInUse { shares: self.clone(), organization, amount: 0 }
    }

    /// Whether no organization uses anything.
    #[cfg(test)]
    pub(super) fn is_unused(&self) -> bool {
        self.0.in_use.locked().is_empty()
    }
}

impl ShareInUse {
    /// Adds `amount`; `false`, and nothing is added, when the organization would have more than its share. A single user may have
    /// more than that.
    #[must_use]
    pub fn add(&mut self, amount: usize) -> bool {
        let Some(organization) = self.organization else { return true };
        let mut in_use = self.shares.0.in_use.locked();
        let total = in_use.entry(organization).or_default();
        let has_others = *total > self.amount;
        if has_others && *total + amount > self.shares.0.limit {
            return false;
        }
        *total += amount;
        self.amount += amount;
        true
    }
}

impl Drop for ShareInUse {
    fn drop(&mut self) {
        let Some(organization) = self.organization else { return };
        let mut in_use = self.shares.0.in_use.locked();
        if let Some(total) = in_use.get_mut(&organization) {
            *total -= self.amount;
            if *total == 0 {
                in_use.remove(&organization);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::new_id;

    #[test]
    fn organization_has_half_beside_others_of_its_own() {
        let shares = Shares::half_of(10);
        let (greedy, other) = (Some(new_id()), Some(new_id()));
        let (mut first, mut second, mut third) = (shares.of(greedy), shares.of(greedy), shares.of(other));
        assert!(first.add(4) && second.add(1) && third.add(5));
        assert!(!second.add(1) && !first.add(1));
        drop(first);
        assert!(second.add(9), "the only user may have more");
        drop((second, third));
        assert!(shares.of(None).add(100));
        assert!(shares.is_unused());
    }
}
