//! Which organizations want their evaluations announced to webhooks. Asked for every few seconds, so that an evaluation that
//! nobody wants to be told of costs nothing.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use assay_clients::WebhooksClient;
use assay_contracts::ids::OrganizationId;

/// What is known of the organizations' wishes. Cloned freely; all clones are one.
#[derive(Clone)]
pub(crate) struct Interest {
    known: Arc<RwLock<Known>>,
    webhooks: Option<WebhooksClient>,
    is_answered: Arc<AtomicBool>,
}

enum Known {
    /// There are no webhooks in this installation.
    Off,
    /// Nobody has answered since the start: everything is announced, because what is not is lost.
    Nothing,
    /// These want to be told.
    Organizations(HashSet<OrganizationId>),
}

impl Interest {
    /// Nobody wants anything without `webhooks`.
    pub(crate) fn of(webhooks: Option<WebhooksClient>) -> Self {
        let known = if webhooks.is_some() { Known::Nothing } else { Known::Off };
        Self { known: Arc::new(RwLock::new(known)), webhooks, is_answered: Arc::new(AtomicBool::new(true)) }
    }

    /// Whether there is anybody who could be told.
    pub(crate) fn is_on(&self) -> bool {
        self.webhooks.is_some()
    }

    /// Whether an evaluation of this organization is announced.
    pub(crate) fn includes(&self, organization_id: OrganizationId) -> bool {
        match &*self.known.read().unwrap_or_else(PoisonError::into_inner) {
            Known::Off => false,
            Known::Nothing => true,
            Known::Organizations(organizations) => organizations.contains(&organization_id),
        }
    }

    /// Asks anew. Without an answer what is known stays, and the log says so once.
    ///
    /// # Errors
    /// None: evaluations do not wait for webhooks.
    pub(crate) async fn refresh(&self) -> Result<(), Infallible> {
        let Some(webhooks) = &self.webhooks else { return Ok(()) };
        match webhooks.interest().await {
            Ok(organizations) => {
                let organizations = Known::Organizations(organizations);
                *self.known.write().unwrap_or_else(PoisonError::into_inner) = organizations;
                if !self.is_answered.swap(true, Ordering::Relaxed) {
                    tracing::info!("webhooks answers again who wants to be told of evaluations");
                }
            }
            Err(error) => {
                if self.is_answered.swap(false, Ordering::Relaxed) {
                    tracing::warn!(
                        cause = %error,
                        "webhooks does not say who wants to be told of evaluations: as before, or all of them are announced"
                    );
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn an_evaluation_is_announced_when_somebody_wants_it_or_nobody_knows() {
        let (one, other) = (new_id(), new_id());
        let interest = |known| Interest { known: Arc::new(RwLock::new(known)), ..Interest::of(None) };
        assert!(!interest(Known::Off).includes(one));
        assert!(interest(Known::Nothing).includes(one));
        let some = interest(Known::Organizations(HashSet::from([one])));
        assert!(some.includes(one) && !some.includes(other));
    }
}
