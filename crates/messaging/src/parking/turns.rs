//! The fair order: organizations take turns, one event each.

/// Takes one item of each queue in turn, until `limit` items are taken or none is left. Returns them with the key of the queue
/// that had the last turn: the next round begins after it.
pub(super) fn take_turns<K: Copy, T>(queues: Vec<(K, Vec<T>)>, limit: usize) -> (Vec<T>, Option<K>) {
    let mut queues: Vec<_> = queues.into_iter().map(|(key, items)| (key, items.into_iter())).collect();
    let (mut taken, mut last_turn) = (Vec::new(), None);
    while taken.len() < limit {
        let taken_before = taken.len();
        for (key, items) in &mut queues {
            if taken.len() < limit
                && let Some(item) = items.next()
            {
                taken.push(item);
                last_turn = Some(*key);
            }
        }
        if taken.len() == taken_before {
            break;
        }
    }
    (taken, last_turn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_queue_has_its_turn_between_large_queues() {
        let queues = vec![('a', vec![1; 1_000]), ('b', vec![2]), ('c', vec![3; 1_000])];
        assert_eq!(take_turns(queues, 8), (vec![1, 2, 3, 1, 3, 1, 3, 1], Some('a')));
    }

    #[test]
    fn queues_beyond_the_limit_have_their_turn_in_the_next_round() {
        let queues = || (0..5).map(|key| (key, vec![key; 10])).collect::<Vec<_>>();
        assert_eq!(take_turns(queues(), 3), (vec![0, 1, 2], Some(2)));
        let mut rotated = queues();
        rotated.rotate_left(3);
        assert_eq!(take_turns(rotated, 3), (vec![3, 4, 0], Some(0)));
    }

    #[test]
    fn empty_queues_end_the_round() {
        assert_eq!(take_turns(vec![('a', vec![1, 1]), ('b', vec![])], 8), (vec![1, 1], Some('a')));
        assert_eq!(take_turns::<char, u8>(Vec::new(), 8), (Vec::new(), None));
    }
}
