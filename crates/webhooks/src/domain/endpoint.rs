//! Endpoints and their subscriptions.

use std::collections::BTreeSet;

use assay_contracts::evaluation::Score;
use assay_contracts::ids::{OrganizationId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{DisabledReason, Webhook, WebhookChange, WebhookEvent};

use super::secret::SealedSecrets;

/// An endpoint, and the organization that it must belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointReference {
    pub organization_id: OrganizationId,
    pub id: WebhookId,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    pub id: WebhookId,
    pub organization_id: OrganizationId,
    pub url: String,
    pub description: Option<String>,
    /// Subscribed events.
    pub events: BTreeSet<WebhookEvent>,
    /// `axis.low_score` is sent for scores below this.
    pub low_score_below: Score,
    pub enabled: bool,
    /// Set when the service disabled the endpoint.
    pub disabled_reason: Option<DisabledReason>,
    pub secrets: SealedSecrets,
    /// Time of the first failure since the last success.
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Endpoint {
    pub fn reference(&self) -> EndpointReference {
        EndpointReference { organization_id: self.organization_id, id: self.id }
    }

    /// Whether the endpoint is subscribed to an event about evaluations.
    pub fn wants_evaluations(&self) -> bool {
        self.events.iter().any(|event| event.is_evaluation_event())
    }

    /// The endpoint after a change by its owner.
    #[must_use]
    pub fn changed(mut self, change: WebhookChange, now: Timestamp) -> Self {
        let WebhookChange { url, description, events, axis_low_score_below, enabled } = change;
        if let Some(url) = url.filter(|url| *url != self.url) {
            self.url = url;
            // The failures were those of the previous URL.
            self.failing_since = None;
        }
        self.description = description.or(self.description).filter(|text| !text.is_empty());
        self.events = events.unwrap_or(self.events);
        self.low_score_below = axis_low_score_below.unwrap_or(self.low_score_below);
        if let Some(enabled) = enabled {
            self.enabled = enabled;
            // The owner's decision overrides that of the service and restarts the count of failing days.
            self.disabled_reason = None;
            self.failing_since = None;
        }
        self.updated_at = now;
        self
    }
}

impl From<Endpoint> for Webhook {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            id: endpoint.id,
            url: endpoint.url,
            description: endpoint.description,
            events: endpoint.events,
            axis_low_score_below: endpoint.low_score_below,
            enabled: endpoint.enabled,
            disabled_reason: endpoint.disabled_reason,
            failing_since: endpoint.failing_since,
            created_at: endpoint.created_at,
            updated_at: endpoint.updated_at,
        }
    }
}
