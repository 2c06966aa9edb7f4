//! The attempts in flight, by endpoint and by organization.

use std::collections::HashMap;
use std::hash::Hash;

use assay_contracts::ids::{OrganizationId, WebhookId};

use crate::domain::attempt::ClaimedMessage;

#[derive(Debug, Default)]
pub(super) struct InFlight {
    endpoints: HashMap<WebhookId, usize>,
    organizations: HashMap<OrganizationId, usize>,
}

/// The endpoint that an attempt is sent to, and its organization.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recipient {
    pub(super) endpoint: WebhookId,
    pub(super) organization: OrganizationId,
}

impl Recipient {
    pub(super) fn of(message: &ClaimedMessage) -> Self {
        Self { endpoint: message.endpoint_id, organization: message.organization_id }
    }
}

impl InFlight {
    pub(super) fn begin(&mut self, to: Recipient) {
        *self.endpoints.entry(to.endpoint).or_default() += 1;
        *self.organizations.entry(to.organization).or_default() += 1;
    }

    pub(super) fn end(&mut self, to: Recipient) {
        decrement(&mut self.endpoints, to.endpoint);
        decrement(&mut self.organizations, to.organization);
    }

    pub(super) fn total(&self) -> usize {
        self.endpoints.values().sum()
    }

    /// Endpoints with more than `count` attempts.
    pub(super) fn endpoints_above(&self, count: usize) -> Vec<WebhookId> {
        self.endpoints.iter().filter(|(_, attempts)| **attempts > count).map(|(id, _)| *id).collect()
    }

    pub(super) fn by_organization(&self) -> HashMap<OrganizationId, usize> {
        self.organizations.clone()
    }
}

fn decrement<K: Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
