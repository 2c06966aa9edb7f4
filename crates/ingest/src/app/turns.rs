//! A queue in which organizations take turns.

use std::collections::{HashMap, VecDeque};

use assay_contracts::ids::OrganizationId;

/// Items by organization, one from each in turn; those of one organization in order.
pub struct Turns<T> {
    queues: HashMap<OrganizationId, Queue<T>>,
    /// Organizations with items: the first one has the next turn.
    order: VecDeque<OrganizationId>,
    items: usize,
    bytes: usize,
}

struct Queue<T> {
    /// Items with their bytes.
    items: VecDeque<(usize, T)>,
    bytes: usize,
}

impl<T> Turns<T> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.items
    }

    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Bytes of all items.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of items of an organization, and their bytes.
    pub fn totals_of(&self, organization: OrganizationId) -> (usize, usize) {
        self.queues.get(&organization).map_or((0, 0), |queue| (queue.items.len(), queue.bytes))
    }

    /// Appends an item to the queue of its organization, which keeps its place in the order of turns.
    pub fn push_back(&mut self, organization: OrganizationId, bytes: usize, item: T) {
        if !self.queues.contains_key(&organization) {
            self.order.push_back(organization);
        }
        self.count_item(organization, bytes).push_back((bytes, item));
    }

    /// Puts an item in front of all others.
    pub fn push_front(&mut self, organization: OrganizationId, bytes: usize, item: T) {
        self.order.retain(|other| *other != organization);
        self.order.push_front(organization);
        self.count_item(organization, bytes).push_front((bytes, item));
    }

    /// Takes the next item of the organization that has the turn.
    pub fn pop(&mut self) -> Option<T> {
        let organization = self.order.pop_front()?;
        let queue = self.queues.get_mut(&organization)?;
        let (bytes, item) = queue.items.pop_front()?;
        queue.bytes -= bytes;
        self.items -= 1;
        self.bytes -= bytes;
        if queue.items.is_empty() {
            self.queues.remove(&organization);
        } else {
            self.order.push_back(organization);
        }
        Some(item)
    }

    /// Counts a new item, and returns the queue that it belongs into.
    fn count_item(&mut self, organization: OrganizationId, bytes: usize) -> &mut VecDeque<(usize, T)> {
        self.items += 1;
        self.bytes += bytes;
        let empty = || Queue { items: VecDeque::new(), bytes: 0 };
        let queue = self.queues.entry(organization).or_insert_with(empty);
        queue.bytes += bytes;
        &mut queue.items
    }
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Self { queues: HashMap::new(), order: VecDeque::new(), items: 0, bytes: 0 }
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn organizations_take_turns_and_keep_their_own_order() {
        let mut turns = Turns::default();
        let (large, small) = (new_id(), new_id());
        for item in 1..=4 {
            turns.push_back(large, 10, item);
        }
        turns.push_back(small, 1, 100);
        assert_eq!((turns.len(), turns.bytes()), (5, 41));
        let totals = (turns.totals_of(large), turns.totals_of(small), turns.totals_of(new_id()));
        assert_eq!(totals, ((4, 40), (1, 1), (0, 0)));
        assert_eq!([turns.pop(), turns.pop(), turns.pop()], [Some(1), Some(100), Some(2)]);
        turns.push_back(small, 1, 101);
        assert_eq!([turns.pop(), turns.pop(), turns.pop()], [Some(3), Some(101), Some(4)]);
        assert_eq!((turns.pop(), turns.len(), turns.bytes()), (None, 0, 0));
    }

    #[test]
    fn item_put_in_front_is_the_next_one() {
        let mut turns = Turns::default();
        let (first, second) = (new_id(), new_id());
        turns.push_back(first, 1, 1);
        turns.push_back(second, 1, 2);
        turns.push_back(second, 1, 3);
        turns.push_front(second, 1, 0);
        let order: Vec<_> = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, [0, 1, 2, 3]);
        turns.push_front(first, 1, 7);
        assert_eq!((turns.pop(), turns.is_empty()), (Some(7), true));
    }
}
