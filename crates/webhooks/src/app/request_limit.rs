//! The limit on messages that an organization requests: tests and replays.

use std::num::NonZeroU32;

use assay_contracts::ids::OrganizationId;
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::RequestError;

/// Limits the messages that each organization requests in a minute; a minute's quota may be used at once.
pub(crate) struct RequestLimit {
    /// `None`: no limit.
    limiter: Option<RateLimiter<OrganizationId, HashMapStateStore<OrganizationId>, DefaultClock>>,
    clock: DefaultClock,
    per_minute: u32,
}

impl RequestLimit {
    /// `per_minute` 0: no limit.
    pub(crate) fn new(per_minute: u32) -> Self {
        let quota = NonZeroU32::new(per_minute).map(Quota::per_minute);
        Self { limiter: quota.map(RateLimiter::hashmap), clock: DefaultClock::default(), per_minute }
    }

    /// Takes one message from the organization's quota.
    ///
    /// # Errors
    /// [`RequestError::TooManyRequested`] with the time until the next one is allowed.
    pub(crate) fn check(&self, organization_id: OrganizationId) -> Result<(), RequestError> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        limiter.check_key(&organization_id).map_err(|until| RequestError::TooManyRequested {
            per_minute: self.per_minute,
            wait: until.wait_time_from(self.clock.now()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn each_organization_has_its_own_quota() {
        let limit = RequestLimit::new(2);
        let (one, other) = (new_id(), new_id());
        assert!(limit.check(one).is_ok() && limit.check(one).is_ok() && limit.check(other).is_ok());
        let Err(RequestError::TooManyRequested { per_minute: 2, wait }) = limit.check(one) else {
            unreachable!("a third message was allowed")
        };
        assert!(wait > Duration::from_secs(20) && wait <= Duration::from_secs(30), "{wait:?}");
        assert!((0..1_000).all(|_| RequestLimit::new(0).check(one).is_ok()));
    }
}
