//! The events that this role consumes.

mod notifications;

pub(crate) use self::notifications::{NotificationsHandler, subscription};
