//! What the gateway sends to services with every call.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::runtime::now;

use super::{SERVICE_SECRET, Site};

/// A token lives for a minute.
const RENEWED_AFTER: Duration = Duration::from_secs(20);

impl Site {
    /// Makes tokens as the gateway does, for calling a service directly: each time one that is still valid.
    pub fn service_bearer(
        &self,
        audience: Audience,
        claims: ServiceClaims,
    ) -> Result<impl Fn() -> String + Send + Sync + use<>> {
        let tokens = ServiceTokens::new(&SERVICE_SECRET.to_owned().into())?;
        // Once now, so that one that cannot be made is noticed here.
        let first = (Instant::now(), tokens.issue(audience, &claims, now())?);
        let current = Mutex::new(first);
        Ok(move || {
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            if current.0.elapsed() > RENEWED_AFTER {
                // An empty one is refused, and a run with refusals is none.
                let token = tokens.issue(audience, &claims, now()).unwrap_or_default();
                *current = (Instant::now(), token);
            }
            current.1.clone()
        })
    }
}
