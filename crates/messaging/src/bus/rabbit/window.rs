//! How many messages a consumer may hold, so that they hold about as many events as it may have in flight.
//!
//! The broker counts messages, and one message holds one event or many. Few messages at first; more while those that
//! come are small; fewer again, and the surplus given back, when they turn out large.

use std::time::Duration;

use tokio::time::Instant;

/// With a single message nothing would be at hand while its last events are handled.
const LEAST: usize = 2;
/// By how much the window is widened at once. Small messages may be followed by a crowd of large ones.
const WIDENING: usize = 4;
/// Between a change and a widening.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of messages that the broker may have given us without hearing of them.
pub(super) struct Window {
    max_in_flight: usize,
    messages: usize,
    changed: Option<Instant>,
}

/// Messages that were taken in and are not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    pub(super) messages: usize,
    /// That came with them.
    pub(super) events: usize,
    /// Those of the events that are not settled.
    pub(super) unsettled: usize,
}

impl Window {
    /// For messages that hold about as many events as those of our own making do at most.
    pub(super) fn new(max_in_flight: usize, events_per_message: usize) -> Self {
        let max_in_flight = max_in_flight.clamp(1, usize::from(u16::MAX));
        let window = Self { max_in_flight, messages: LEAST, changed: None };
        Self { messages: window.fitting(1, events_per_message), ..window }
    }

    /// For `basic.qos`.
    pub(super) fn prefetch(&self) -> u16 {
        u16::try_from(self.messages).unwrap_or(u16::MAX)
    }

    /// From when on the window should be another one, unless it is right.
    pub(super) fn misfits_from(&self, held: Held, now: Instant) -> Option<Instant> {
        let fitting = self.fitting(held.messages, held.events);
        if self.is_surplus(held) && fitting < self.messages {
            return Some(now);
        }
        // The broker gives nothing more although there is room. Small differences are not worth the change.
        let is_waiting = held.messages >= self.messages;
        let is_worth_it = fitting * 4 >= self.messages * 5;
        let is_allowed_from = self.changed.map_or(now, |changed| changed + PAUSE);
        (is_waiting && is_worth_it).then_some(is_allowed_from)
    }

    /// Makes the window fit.
    pub(super) fn change(&mut self, held: Held, now: Instant) {
        self.messages = self.fitting(held.messages, held.events).min(self.messages * WIDENING);
        self.changed = Some(now);
    }

    /// Whether a message of so many events, which nobody has begun with, can be spared.
    pub(super) fn can_spare(&self, events: usize, held: Held) -> bool {
        held.messages > self.messages && held.unsettled.saturating_sub(events) >= self.max_in_flight
    }

    fn is_surplus(&self, held: Held) -> bool {
        held.unsettled > 2 * self.max_in_flight
    }

    /// How many messages of the size of these hold `max_in_flight` events.
    fn fitting(&self, messages: usize, events: usize) -> usize {
        let fitting = (self.max_in_flight * messages).div_ceil(events.max(1));
        fitting.clamp(LEAST.min(self.max_in_flight), self.max_in_flight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_window_is_wide_for_single_events_and_narrow_for_full_messages() {
        for (max_in_flight, events_per_message, messages) in
            [(256, 64, 4), (256, 1, 256), (16, 64, 2), (1, 64, 1), (0, 64, 1), (100_000, 1, 65_535)]
        {
            let window = Window::new(max_in_flight, events_per_message);
            assert_eq!(window.prefetch(), messages, "{max_in_flight} with {events_per_message}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn small_messages_widen_it_step_by_step_up_to_one_message_for_each_event() {
        let mut window = Window::new(256, 64);
        let mut widths = Vec::new();
        while let Some(from) = window.misfits_from(singles(window.messages), Instant::now()) {
            tokio::time::sleep_until(from).await;
            window.change(singles(window.messages), Instant::now());
            widths.push(window.prefetch());
        }
        assert_eq!(widths, [16, 64, 256]);
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_not_widened_while_the_broker_could_send_more_nor_twice_at_once() {
        let mut window = Window::new(256, 64);
        assert_eq!(window.misfits_from(singles(3), Instant::now()), None);
        assert_eq!(window.misfits_from(singles(4), Instant::now()), Some(Instant::now()));
        window.change(singles(4), Instant::now());
        assert_eq!(window.misfits_from(singles(16), Instant::now()), Some(Instant::now() + PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_of_large_messages_narrows_it_at_once_and_the_surplus_can_be_spared() {
        let mut window = Window::new(256, 1);
        let crowd = of_64(256);
        assert_eq!(window.misfits_from(crowd, Instant::now()), Some(Instant::now()));
        window.change(crowd, Instant::now());
        assert_eq!(window.prefetch(), 4);
        assert!(window.can_spare(64, crowd));
        assert!(!window.can_spare(64, of_64(4)));
        assert!(!window.can_spare(64, Held { unsettled: 256 + 63, ..of_64(5) }));
        assert_eq!(window.misfits_from(of_64(4), Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_that_are_nearly_settled_are_not_small_ones() {
        let window = Window::new(256, 64);
        assert_eq!(window.misfits_from(Held { unsettled: 4, ..of_64(4) }, Instant::now()), None);
    }

    fn singles(messages: usize) -> Held {
        Held { messages, events: messages, unsettled: messages }
    }

    fn of_64(messages: usize) -> Held {
        Held { messages, events: messages * 64, unsettled: messages * 64 }
    }
}
