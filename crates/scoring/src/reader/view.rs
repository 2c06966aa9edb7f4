//! The messages that are read, in order.
//!
//! Events and internal notes are not: the customer never saw them. Of what the AI writes behind the customer's last
//! message only the first message is: the others answer nothing, even behind one that talks to an evaluator. Text that does
//! is not read at all, and is nobody's last message, unless the customer wrote nothing else.

use crate::transcript::{Item, Role, Transcript};

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
    let by_customer = |item: &Item<'_>| item.role == Role::Customer;
    let last_customer = items.iter().rposition(|item| by_customer(item) && !item.is_injected);
    let last_customer = last_customer.or_else(|| items.iter().rposition(by_customer));
    let mut answered = false;
    let mut read = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if item.role.is_unseen() {
            continue;
        }
        let answers = item.role == Role::Ai && last_customer.is_some_and(|last| index > last);
        let is_read = !(item.is_injected || answers && answered);
        answered |= answers;
        if is_read {
            read.push(Placed { item: index, role: item.role });
        }
    }
    read
}
