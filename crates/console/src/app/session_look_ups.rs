//! Bounds the look-ups of session tokens that this process does not know: made-up cookies must not occupy agent-registry.

use assay_platform::auth::TokenHash;
use quick_cache::sync::Cache;
use tokio::sync::{Semaphore, SemaphorePermit};

/// Maximum number of simultaneous look-ups of unknown tokens.
const MAX_UNKNOWN: usize = 32;

/// Maximum number of tokens that are remembered as known.
const MAX_KNOWN: usize = 10_000;

/// A known token is one that belonged to a session when it was last looked up. It is looked up again each time, without a permit.
pub(crate) struct SessionLookUps {
    known: Cache<TokenHash, ()>,
    unknown_permits: Semaphore,
}

/// More unknown tokens are being looked up than may be at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyUnknown;

impl SessionLookUps {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(MAX_KNOWN), unknown_permits: Semaphore::new(MAX_UNKNOWN) }
    }

    /// The permit for a look-up of an unknown token, to be held while it runs; `None` for a known one.
    pub(crate) fn begin(&self, token: TokenHash) -> Result<Option<SemaphorePermit<'_>>, TooManyUnknown> {
        if self.known.get(&token).is_some() {
            return Ok(None);
        }
        self.unknown_permits.try_acquire().map(Some).map_err(|_| TooManyUnknown)
    }

    /// Records whether the token belongs to a session.
    pub(crate) fn end(&self, token: TokenHash, is_found: bool) {
        if is_found {
            self.known.insert(token, ());
        } else {
            self.known.remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_tokens_are_looked_up_beside_any_number_of_unknown_ones() {
        let look_ups = SessionLookUps::new();
        let token = |number: usize| TokenHash::from_hex(&format!("{number:064x}")).unwrap();
        drop(look_ups.begin(token(0)).unwrap());
        look_ups.end(token(0), true);
        let running: Vec<_> =
            (1..=MAX_UNKNOWN).map(|number| look_ups.begin(token(number)).unwrap()).collect();
        assert_eq!(look_ups.begin(token(1_000)).err(), Some(TooManyUnknown));
        assert!(look_ups.begin(token(0)).unwrap().is_none());
        look_ups.end(token(0), false);
        assert_eq!(look_ups.begin(token(0)).err(), Some(TooManyUnknown), "its session has ended");
        drop(running);
        assert!(look_ups.begin(token(1_000)).is_ok());
    }
}
