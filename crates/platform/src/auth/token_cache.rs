//! Cache of recently issued and verified service tokens. Signing and verifying costs more than the rest of a small request,
//! and a caller sends the same claims thousands of times a second.

use quick_cache::Equivalent;
use quick_cache::sync::Cache;

use super::claims::{Audience, ServiceClaims};

/// Entries of each cache: one per tenant and service within a few seconds.
const CAPACITY: usize = 4_096;

/// How long an issued token is reused, in seconds; less than its lifetime.
const REUSE_SECONDS: i64 = 15;

/// Issued and verified tokens.
pub(super) struct TokenCache {
    issued: Cache<IssuedKey, Issued>,
    verified: Cache<String, Verified>,
}

/// Key of an issued token.
#[derive(Hash, PartialEq, Eq)]
struct IssuedKey(Audience, ServiceClaims);

/// Borrowed form of [`IssuedKey`] for look-ups; its hash is the same.
#[derive(Hash)]
struct IssuedKeyRef<'a>(Audience, &'a ServiceClaims);

impl Equivalent<IssuedKey> for IssuedKeyRef<'_> {
    fn equivalent(&self, key: &IssuedKey) -> bool {
        self.0 == key.0 && *self.1 == key.1
    }
}

#[derive(Clone)]
struct Issued {
    token: String,
    /// Seconds since the epoch.
    issued_at: i64,
}

/// Claims of a verified token.
#[derive(Clone)]
struct Verified {
    audience: Audience,
    claims: ServiceClaims,
    /// Seconds since the epoch.
    expires_at: i64,
}

impl TokenCache {
    pub(super) fn new() -> Self {
        Self { issued: Cache::new(CAPACITY), verified: Cache::new(CAPACITY) }
    }

    /// A token issued for the same audience and claims within [`REUSE_SECONDS`].
    pub(super) fn issued(
        &self,
        audience: Audience,
        claims: &ServiceClaims,
        now_seconds: i64,
    ) -> Option<String> {
        let issued = self.issued.get(&IssuedKeyRef(audience, claims))?;
        // A clock step in either direction misses the cache.
        (0..REUSE_SECONDS).contains(&(now_seconds - issued.issued_at)).then_some(issued.token)
    }

    pub(super) fn insert_issued(
        &self,
        audience: Audience,
        claims: ServiceClaims,
        token: String,
        issued_at: i64,
    ) {
        self.issued.insert(IssuedKey(audience, claims), Issued { token, issued_at });
    }

    /// Claims of a token already verified for `audience`, unless it has expired.
    pub(super) fn verified(
        &self,
        audience: Audience,
        token: &str,
        now_seconds: i64,
    ) -> Option<ServiceClaims> {
        let verified = self.verified.get(token)?;
        (verified.audience == audience && now_seconds < verified.expires_at).then_some(verified.claims)
    }

    pub(super) fn insert_verified(
        &self,
        audience: Audience,
        token: &str,
        claims: ServiceClaims,
        expires_at: i64,
    ) {
        self.verified.insert(token.to_owned(), Verified { audience, claims, expires_at });
    }
}
