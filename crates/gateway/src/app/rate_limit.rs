//! The rate limit of each API key.

use std::num::NonZeroU32;
use std::time::Duration;

use assay_contracts::ids::ApiKeyId;
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

/// Limits each API key to the same number of requests per second, with a burst of one second.
pub(crate) struct RateLimit {
    limiter: RateLimiter<ApiKeyId, HashMapStateStore<ApiKeyId>, DefaultClock>,
    clock: DefaultClock,
    per_second: NonZeroU32,
}

impl RateLimit {
    /// `None` for 0, which means no limit.
    pub(crate) fn new(per_second: u32) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let limiter = RateLimiter::hashmap(Quota::per_second(per_second));
        Some(Self { limiter, clock: DefaultClock::default(), per_second })
    }

    /// Takes one request from the key's quota. The error is the time until the next request is allowed.
    pub(crate) fn check(&self, key: ApiKeyId) -> Result<(), Duration> {
        self.limiter.check_key(&key).map_err(|until| until.wait_time_from(self.clock.now()))
    }

    pub(crate) fn per_second(&self) -> u32 {
        self.per_second.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_platform::runtime::new_id;

    #[test]
    fn each_key_has_its_own_quota() {
        let limit = RateLimit::new(2).unwrap();
        let (one, other): (ApiKeyId, ApiKeyId) = (new_id(), new_id());
        assert!(limit.check(one).is_ok() && limit.check(one).is_ok());
        assert!(limit.check(one).unwrap_err() <= Duration::from_secs(1));
        assert!(limit.check(other).is_ok());
        assert!(RateLimit::new(0).is_none());
    }
}
