//! The prefetch of a consumer, in messages, so that its unacknowledged messages hold about `max_in_flight` events.
//!
//! The broker counts messages, and one message holds one event or many. The window starts small, grows while messages
//! turn out small, and shrinks when they turn out large. Messages beyond a smaller window are kept, because the broker counts
//! each requeue as a delivery, and an event delivered several times without an ack is isolated ([`crate::bus::cut_short`]). Only
//! what would take too much memory is requeued.

use std::time::Duration;

use tokio::time::Instant;

use crate::bus::MAX_IN_FLIGHT_BYTES;

/// With one message at a time the handler would idle until the next one arrives.
const MIN_MESSAGES: usize = 2;
/// Bytes of unacked messages that the window aims at; it shrinks above twice as many. Their unpacked events take twice as
/// much memory.
const TARGET_BYTES: usize = MAX_IN_FLIGHT_BYTES;
/// Maximum growth in one resize, because a burst of large messages may follow small ones.
const GROWTH_FACTOR: usize = 4;
/// Minimum time from a resize to the next growth.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);

/// How many unacknowledged messages the broker may send.
pub(super) struct PrefetchWindow {
    max_in_flight: usize,
    /// The current prefetch.
    messages: usize,
    resized_at: Option<Instant>,
}

/// Messages that were delivered and are not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct UnackedCounts {
    pub(super) messages: usize,
    /// Without those that an earlier consumer of the session got.
    pub(super) of_consumer: usize,
    /// All events of these messages.
    pub(super) events: usize,
    /// Events that are not settled.
    pub(super) pending: usize,
    /// Bytes of these messages.
    pub(super) bytes: usize,
}

impl PrefetchWindow {
    /// Sized for messages that hold `events_per_message` events.
    pub(super) fn new(max_in_flight: usize, events_per_message: usize) -> Self {
        let max_in_flight = max_in_flight.clamp(1, usize::from(u16::MAX));
        let expected = UnackedCounts { messages: 1, events: events_per_message, ..UnackedCounts::default() };
        let mut window = Self { max_in_flight, messages: MIN_MESSAGES, resized_at: None };
        window.messages = window.target_messages(expected);
        window
    }

    /// For `basic.qos`.
    pub(super) fn prefetch(&self) -> u16 {
        u16::try_from(self.messages).unwrap_or(u16::MAX)
    }

    /// When the window should be resized; `None` while its size is right, or about right: a resize has its cost.
    pub(super) fn resize_due_at(&self, unacked: UnackedCounts, now: Instant) -> Option<Instant> {
        // Until the broker has sent all that it may, messages may be on their way. It requeues those that arrive for a cancelled
        // consumer.
        if unacked.of_consumer < self.messages {
            return None;
        }
        let target = self.target_messages(unacked);
        if self.has_surplus(unacked) {
            return (target < self.messages).then_some(now);
        }
        let grows_by_a_quarter = target * 4 >= self.messages * 5;
        let growth_allowed_at = self.resized_at.map_or(now, |resized_at| resized_at + GROWTH_INTERVAL);
        grows_by_a_quarter.then_some(growth_allowed_at)
    }

    pub(super) fn resize(&mut self, unacked: UnackedCounts, now: Instant) {
        self.messages = self.target_messages(unacked).min(self.messages * GROWTH_FACTOR);
        self.resized_at = Some(now);
    }

    /// Whether the unacked messages take too much memory: then those without a dispatched event must be requeued.
    pub(super) fn must_requeue(&self, unacked: UnackedCounts) -> bool {
        unacked.messages > self.messages && unacked.bytes > TARGET_BYTES
    }

    /// Whether the pending events or the unacked bytes are more than twice what is intended: then the window shrinks.
    fn has_surplus(&self, unacked: UnackedCounts) -> bool {
        unacked.pending > 2 * self.max_in_flight || unacked.bytes > 2 * TARGET_BYTES
    }

    /// The number of messages that hold `max_in_flight` events or `TARGET_BYTES`, at the average size of the given ones.
    fn target_messages(&self, unacked: UnackedCounts) -> usize {
        let by_events = (self.max_in_flight * unacked.messages).div_ceil(unacked.events.max(1));
        let by_bytes = (TARGET_BYTES * unacked.messages).checked_div(unacked.bytes).unwrap_or(usize::MAX);
        by_events.min(by_bytes).clamp(MIN_MESSAGES.min(self.max_in_flight), self.max_in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn initial_prefetch_follows_events_per_message() {
        for (max_in_flight, events_per_message, messages) in
            [(256, 64, 4), (256, 1, 256), (16, 64, 2), (1, 64, 1), (0, 64, 1), (100_000, 1, 65_535)]
        {
            let window = PrefetchWindow::new(max_in_flight, events_per_message);
            assert_eq!(window.prefetch(), messages, "{max_in_flight} with {events_per_message}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn small_messages_grow_the_window_step_by_step() {
        let mut window = PrefetchWindow::new(256, 64);
        let mut sizes = Vec::new();
        while let Some(due_at) = window.resize_due_at(singles(window.messages), Instant::now()) {
            tokio::time::sleep_until(due_at).await;
            window.resize(singles(window.messages), Instant::now());
            sizes.push(window.prefetch());
        }
        assert_eq!(sizes, [16, 64, 256]);
    }

    #[tokio::test(start_paused = true)]
    async fn growth_needs_an_exhausted_window_and_a_pause() {
        let mut window = PrefetchWindow::new(256, 64);
        assert_eq!(window.resize_due_at(singles(3), Instant::now()), None);
        assert_eq!(window.resize_due_at(singles(4), Instant::now()), Some(Instant::now()));
        window.resize(singles(4), Instant::now());
        assert_eq!(window.resize_due_at(singles(16), Instant::now()), Some(Instant::now() + GROWTH_INTERVAL));
    }

    #[tokio::test(start_paused = true)]
    async fn messages_of_many_events_shrink_the_window_and_are_kept() {
        let mut window = PrefetchWindow::new(256, 1);
        let burst = of_64(256);
        assert_eq!(window.resize_due_at(burst, Instant::now()), Some(Instant::now()));
        window.resize(burst, Instant::now());
        assert_eq!(window.prefetch(), 4);
        assert!(!window.must_requeue(burst));
        assert_eq!(window.resize_due_at(of_64(256), Instant::now()), None);
        assert_eq!(window.resize_due_at(of_64(4), Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn window_keeps_its_size_while_messages_may_be_on_their_way() {
        let window = PrefetchWindow::new(256, 1);
        assert_eq!(window.resize_due_at(of_64(255), Instant::now()), None);
        let of_earlier_consumer = UnackedCounts { of_consumer: 0, ..of_64(256) };
        assert_eq!(window.resize_due_at(of_earlier_consumer, Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nearly_settled_large_messages_do_not_count_as_small() {
        let window = PrefetchWindow::new(256, 64);
        assert_eq!(window.resize_due_at(UnackedCounts { pending: 4, ..of_64(4) }, Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn messages_of_many_bytes_shrink_the_window() {
        let mut window = PrefetchWindow::new(256, 1);
        let burst = UnackedCounts { bytes: 256 * 1024 * 1024, ..singles(256) };
        assert_eq!(window.resize_due_at(burst, Instant::now()), Some(Instant::now()));
        window.resize(burst, Instant::now());
        assert_eq!(window.prefetch(), 16);
        assert!(window.must_requeue(burst));
        assert!(!window.must_requeue(UnackedCounts { bytes: 16 * 1024 * 1024, ..singles(16) }));
        let huge = UnackedCounts { bytes: 64 * 1024 * 1024, ..singles(1) };
        window.resize(huge, Instant::now());
        assert_eq!(window.prefetch(), 2);
    }

    fn singles(messages: usize) -> UnackedCounts {
        UnackedCounts { messages, of_consumer: messages, events: messages, pending: messages, bytes: 0 }
    }

    fn of_64(messages: usize) -> UnackedCounts {
        let events = messages * 64;
        UnackedCounts { messages, of_consumer: messages, events, pending: events, bytes: 0 }
    }
}
