//! Selection of the messages that the reader sees.
//!
//! Excluded are events and internal notes, which the customer never saw; prompt injections; and all but the first message
//! of the AI after the customer's last message, because they answer no further message. A prompt injection counts as the
//! customer's last message only if the customer wrote nothing else.

use crate::transcript::{Item, Role, Transcript};

/// A message that the reader sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SelectedMessage {
    /// Its index among the transcript's items.
    pub item: usize,
    /// Who speaks.
    pub role: Role,
}

/// Selects messages among the items before `end`.
pub(crate) fn selected_messages(transcript: &Transcript<'_>, end: usize) -> Vec<SelectedMessage> {
    let items = transcript.items.get(..end).unwrap_or(&transcript.items);
    let by_customer = |item: &Item<'_>| item.role == Role::Customer;
    let last_customer = items.iter().rposition(|item| by_customer(item) && !item.is_injection);
    let last_customer = last_customer.or_else(|| items.iter().rposition(by_customer));
    let mut had_reply = false;
    let mut selection = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if item.role.is_hidden_from_customer() {
            continue;
        }
        let is_reply = item.role == Role::Ai && last_customer.is_some_and(|last| index > last);
        let is_read = !(item.is_injection || is_reply && had_reply);
        // An injected reply counts as the first one, too.
        had_reply |= is_reply;
        if is_read {
            selection.push(SelectedMessage { item: index, role: item.role });
        }
    }
    selection
}
