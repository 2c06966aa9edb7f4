//! Names on the broker. All begin with the namespace, so that installations and tests can share a broker.

use lapin::types::ShortString;

use crate::bus::errors::BusError;
use crate::settings::RetryDelay;

/// Keeps all names far below AMQP's limit of 255 bytes.
const MAX_NAMESPACE: usize = 64;

/// The namespace of an installation.
#[derive(Clone)]
pub(super) struct Names {
    namespace: String,
}

impl Names {
    pub(super) fn parse(namespace: &str) -> Result<Self, BusError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if namespace.is_empty() || namespace.len() > MAX_NAMESPACE || !namespace.bytes().all(is_allowed) {
            return Err(BusError::InvalidSetting(
                "bus.namespace must be 1 to 64 letters, digits, dots, dashes or underscores",
            ));
        }
        Ok(Self { namespace: namespace.to_owned() })
    }

    /// The topic exchange of all events.
    pub(super) fn exchange(&self) -> ShortString {
        self.prefixed("events")
    }

    /// The queue of a subscription.
    pub(super) fn queue(&self, queue: &str) -> ShortString {
        self.prefixed(queue)
    }

    /// The queue in which failed deliveries wait for `delay`. The delay is part of the name because the broker refuses
    /// to redeclare a queue with another one.
    pub(super) fn retry_queue(&self, queue: &str, delay: RetryDelay) -> ShortString {
        self.prefixed(&format!("{queue}.retry.{}ms", delay.as_millis()))
    }

    /// The isolation queue: events that are handled one at a time, with no other event of the subscription.
    pub(super) fn isolation_queue(&self, queue: &str) -> ShortString {
        self.prefixed(&format!("{queue}.alone"))
    }

    /// The queue of the dead letters.
    pub(super) fn dead_letter_queue(&self, queue: &str) -> ShortString {
        self.prefixed(&format!("{queue}.dead"))
    }

    fn prefixed(&self, name: &str) -> ShortString {
        format!("{}.{name}", self.namespace).into()
    }
}
