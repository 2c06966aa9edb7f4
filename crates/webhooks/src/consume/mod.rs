//! The events that this role takes from the bus.

mod announcements;

pub(crate) use self::announcements::{AnnouncementsHandler, subscription};
