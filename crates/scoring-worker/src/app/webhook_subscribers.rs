//! The organizations with an enabled endpoint for evaluations, polled every few seconds. Evaluations of all other
//! organizations are not announced, and cost only a look-up in memory.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use assay_clients::WebhooksClient;
use assay_contracts::ids::OrganizationId;
use assay_platform::runtime::LockExt as _;

/// The current set of subscribed organizations. Clones share it.
#[derive(Clone)]
pub(crate) struct WebhookSubscribers {
    current: Arc<Mutex<Subscribers>>,
    webhooks: Option<WebhooksClient>,
    is_reachable: Arc<AtomicBool>,
}

enum Subscribers {
    /// The role webhooks is turned off in this installation.
    Disabled,
    /// The role webhooks has not answered since the start. All evaluations are announced, because subscribers would never
    /// get one that is not.
    Unknown,
    Known(HashSet<OrganizationId>),
}

impl WebhookSubscribers {
    /// Disabled without `webhooks`.
    pub(crate) fn new(webhooks: Option<WebhooksClient>) -> Self {
        let current = if webhooks.is_some() { Subscribers::Unknown } else { Subscribers::Disabled };
        Self {
            current: Arc::new(Mutex::new(current)),
            webhooks,
            is_reachable: Arc::new(AtomicBool::new(true)),
        }
    }

    /// Whether the role webhooks is turned on in this installation.
    pub(crate) fn is_enabled(&self) -> bool {
        self.webhooks.is_some()
    }

    /// Whether evaluations of this organization are announced.
    pub(crate) fn includes(&self, organization_id: OrganizationId) -> bool {
        match &*self.current.locked() {
            Subscribers::Disabled => false,
            Subscribers::Unknown => true,
            Subscribers::Known(organizations) => organizations.contains(&organization_id),
        }
    }

    /// Asks the role webhooks for its subscribers. If the call fails, the last list stays in use; an outage is logged once.
    pub(crate) async fn refresh(&self) {
        let Some(webhooks) = &self.webhooks else { return };
        match webhooks.subscribers().await {
            Ok(organizations) => {
                let organizations = Subscribers::Known(organizations);
                *self.current.locked() = organizations;
                if !self.is_reachable.swap(true, Ordering::Relaxed) {
                    tracing::info!("webhooks lists its subscribers again");
                }
            }
            Err(error) => {
                if self.is_reachable.swap(false, Ordering::Relaxed) {
                    tracing::warn!(
                        cause = %error,
                        "webhooks does not list its subscribers: the last list stays in use; without one all evaluations \
                         are announced"
                    );
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    #[test]
    fn unknown_subscribers_include_every_organization() {
        let (one, other) = (new_id(), new_id());
        let subscribers = |current| WebhookSubscribers {
            current: Arc::new(Mutex::new(current)),
            ..WebhookSubscribers::new(None)
        };
        assert!(!subscribers(Subscribers::Disabled).includes(one));
        assert!(subscribers(Subscribers::Unknown).includes(one));
        let some = subscribers(Subscribers::Known(HashSet::from([one])));
        assert!(some.includes(one) && !some.includes(other));
    }
}
