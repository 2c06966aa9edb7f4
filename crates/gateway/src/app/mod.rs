//! The gateway's use cases.

mod api_keys;
mod forward_call;
mod rate_limit;

pub(crate) use self::api_keys::ApiKeyCache;
pub(crate) use self::forward_call::{Forward, forward, forward_page};
pub(crate) use self::rate_limit::RateLimit;
