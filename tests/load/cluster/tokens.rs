//! Service tokens, as the gateway makes them.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Result;
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::runtime::{LockExt as _, now};

use super::{Cluster, SERVICE_SECRET};

/// Tokens are valid for a minute.
const RENEW_AFTER: Duration = Duration::from_secs(20);

impl Cluster {
    /// Returns a source of valid tokens for calling a service directly.
    pub fn service_bearer(
        &self,
        audience: Audience,
        claims: ServiceClaims,
    ) -> Result<impl Fn() -> String + Send + Sync + use<>> {
        let tokens = ServiceTokens::new(&SERVICE_SECRET.to_owned().into())?;
        // Fail here if no token can be made.
        let first = (Instant::now(), tokens.issue(audience, &claims, now())?);
        let current = Mutex::new(first);
        Ok(move || {
            let mut current = current.locked();
            if current.0.elapsed() > RENEW_AFTER {
                // An empty token is refused, which fails the run.
                let token = tokens.issue(audience, &claims, now()).unwrap_or_default();
                *current = (Instant::now(), token);
            }
            current.1.clone()
        })
    }
}
