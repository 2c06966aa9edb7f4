//! The gateway's use cases.

mod api_keys;
mod download_slots;
mod forward_call;
mod rate_limit;

pub(crate) use self::api_keys::ApiKeyCache;
pub(crate) use self::download_slots::{DownloadSlot, DownloadSlots, ShareInUse};
pub(crate) use self::forward_call::{Forward, forward, forward_file, forward_page};
pub(crate) use self::rate_limit::RateLimit;
