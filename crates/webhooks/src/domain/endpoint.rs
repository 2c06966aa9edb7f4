//! Endpoints, and which of them want to be told of what.

use std::collections::BTreeSet;

use assay_contracts::evaluation::Score;
use assay_contracts::ids::{OrganizationId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{DisabledReason, Webhook, WebhookChange, WebhookEvent};

use super::secret::SealedSecrets;

/// An endpoint of an organization.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    /// Its id.
    pub id: WebhookId,
    /// The tenant.
    pub organization_id: OrganizationId,
    /// Where messages are posted.
    pub url: String,
    /// What it is for.
    pub description: Option<String>,
    /// What it is told.
    pub events: BTreeSet<WebhookEvent>,
    /// `axis.low_score` is told of scores below this one.
    pub low_score_below: Score,
    /// Whether it is told anything.
    pub enabled: bool,
    /// Why the service disabled it.
    pub disabled_reason: Option<DisabledReason>,
    /// What its messages are signed with.
    pub secrets: SealedSecrets,
    /// Since when its attempts fail.
    pub failing_since: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Endpoint {
    /// Whether it wants to be told of evaluations.
    pub fn wants_evaluations(&self) -> bool {
        self.events.iter().any(|event| event.is_of_evaluation())
    }

    /// The endpoint after a change of its owner's.
    #[must_use]
    pub fn changed(mut self, change: WebhookChange, now: Timestamp) -> Self {
        let WebhookChange { url, description, events, axis_low_score_below, enabled } = change;
        self.url = url.unwrap_or(self.url);
        self.description = description.or(self.description);
        self.events = events.unwrap_or(self.events);
        self.low_score_below = axis_low_score_below.unwrap_or(self.low_score_below);
        if let Some(enabled) = enabled {
            self.enabled = enabled;
            // The owner's decision takes the place of the service's, and the days of failing are counted anew.
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
