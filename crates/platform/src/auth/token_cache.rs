//! Service tokens that were made or checked a moment ago. Signing and checking one costs more than the rest of a small
//! request; a caller and its service say the same to each other thousands of times a second.

use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use super::{Audience, ServiceClaims};

/// Tokens of each kind that are remembered: one for each tenant and service of a few seconds.
const CAPACITY: usize = 4_096;

/// A token is used again for so many seconds; it lives for longer.
const REUSED_SECONDS: i64 = 15;

/// What is remembered.
pub(super) struct TokenCache {
    issued: Cache<Purpose, Issued>,
    verified: Cache<String, Verified>,
}

/// What a token is made for.
#[derive(Hash, PartialEq, Eq)]
struct Purpose(Audience, ServiceClaims);

/// The same, to look it up. Its hash is that of a [`Purpose`] with the same fields.
#[derive(Hash)]
struct AskedPurpose<'a>(Audience, &'a ServiceClaims);

impl Equivalent<Purpose> for AskedPurpose<'_> {
    fn equivalent(&self, purpose: &Purpose) -> bool {
        self.0 == purpose.0 && *self.1 == purpose.1
    }
}

#[derive(Clone)]
struct Issued {
    token: String,
    /// Seconds since the epoch.
    at: i64,
}

/// What a token that was found good says.
#[derive(Clone)]
struct Verified {
    audience: Audience,
    claims: ServiceClaims,
    /// When it expires, in seconds since the epoch.
    expires: i64,
}

impl TokenCache {
    pub(super) fn new() -> Self {
        Self { issued: Cache::new(CAPACITY), verified: Cache::new(CAPACITY) }
    }

    /// A token that was made for the same within the last seconds.
    pub(super) fn issued(
        &self,
        audience: Audience,
        claims: &ServiceClaims,
        now_seconds: i64,
    ) -> Option<String> {
        let issued = self.issued.get(&AskedPurpose(audience, claims))?;
        // After a step of the clock, either way, another one is made.
        (0..REUSED_SECONDS).contains(&(now_seconds - issued.at)).then_some(issued.token)
    }

    pub(super) fn remember_issued(&self, audience: Audience, claims: ServiceClaims, token: String, at: i64) {
        self.issued.insert(Purpose(audience, claims), Issued { token, at });
    }

    /// What exactly this token, once found good for the audience, says, unless it has expired since.
    pub(super) fn verified(
        &self,
        audience: Audience,
        token: &str,
        now_seconds: i64,
    ) -> Option<ServiceClaims> {
        let verified = self.verified.get(token)?;
        (verified.audience == audience && now_seconds < verified.expires).then_some(verified.claims)
    }

    pub(super) fn remember_verified(
        &self,
        audience: Audience,
        token: &str,
        claims: ServiceClaims,
        expires: i64,
    ) {
        self.verified.insert(token.to_owned(), Verified { audience, claims, expires });
    }
}
