//! The gateway's use cases.

mod api_keys;
mod forward_call;
mod rate_limit;
mod report_refusals;
mod slots;

pub(crate) use self::api_keys::ApiKeyCache;
pub(crate) use self::forward_call::{ServiceCall, forward, forward_file, forward_page};
pub(crate) use self::rate_limit::RateLimit;
pub(crate) use self::report_refusals::{REPORT_INTERVAL, Refusals, report_refusals};
pub(crate) use self::slots::{ShareExhausted, Slot, Slots};
