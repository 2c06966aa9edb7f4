//! The messages that are read, in order.
//!
//! Events and internal notes are not: the customer never saw them. Of what the AI writes behind the customer's last
//! message only the first message is: the others answer nothing. Text that talks to an evaluator is not read at all.

use crate::transcript::{Role, Transcript};

/// A message that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Its index among the transcript's items.
    pub item: usize,
    /// Who speaks.
    pub role: Role,
}

/// The messages that are read of a transcript up to the item at `end`, that one left out.
pub(crate) fn messages_read(transcript: &Transcript<'_>, end: usize) -> Vec<Placed> {
    let items = transcript.items.get(..end).unwrap_or(&transcript.items);
    let last_customer = items.iter().rposition(|item| item.role == Role::Customer && !item.is_injected);
    let mut answered = false;
    let mut read = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if matches!(item.role, Role::Note | Role::System) || item.is_injected {
            continue;
        }
        if item.role == Role::Ai && last_customer.is_some_and(|last| index > last) {
            if answered {
                continue;
            }
            answered = true;
        }
        read.push(Placed { item: index, role: item.role });
    }
    read
}

/// Every message that is read at any step of a transcript.
pub(crate) fn all_messages(transcript: &Transcript<'_>) -> Vec<Placed> {
    let items = transcript.items.iter().enumerate();
    let read = items.filter(|(_, item)| !matches!(item.role, Role::Note | Role::System) && !item.is_injected);
    read.map(|(item, of)| Placed { item, role: of.role }).collect()
}
