//! The gateway's use cases.

mod api_keys;
mod forward_call;
mod rate_limit;
mod single_flight;

pub(crate) use self::api_keys::ApiKeyCache;
pub(crate) use self::forward_call::{Forward, forward};
pub(crate) use self::rate_limit::RateLimit;
