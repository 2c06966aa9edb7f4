//! A set of groups, so that asking for a group that is not there costs nothing.

use super::Group;

/// Groups, as one bit each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GroupSet(u128);

const _: () = assert!((Group::Negated as u32) < u128::BITS, "more groups than bits: use a wider set");

impl GroupSet {
    /// Whether the group is in the set.
    pub(crate) const fn holds(self, group: Group) -> bool {
        self.0 & Self::bit(group) != 0
    }

    /// Whether any of the groups is in the set.
    pub(crate) fn holds_any(self, groups: &[Group]) -> bool {
        groups.iter().any(|group| self.holds(*group))
    }

    const fn bit(group: Group) -> u128 {
        1 << group as u32
    }
}

impl FromIterator<Group> for GroupSet {
    fn from_iter<I: IntoIterator<Item = Group>>(groups: I) -> Self {
        Self(groups.into_iter().fold(0, |bits, group| bits | Self::bit(group)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        let set: GroupSet = [Group::Thanks, Group::Negated].into_iter().collect();
        assert!(set.holds(Group::Thanks) && set.holds_any(&[Group::Close, Group::Negated]));
        assert!(!set.holds(Group::Close) && !set.holds_any(&[]));
    }
}
