//! The store of endpoints, messages and attempts. Its statements are written once (`sql/`) and compiled for each
//! database: `on_database!` calls `postgres::f(connection, …)` or `sqlite::f(connection, …)`.

#[cfg(feature = "distributed")]
mod postgres;
mod sqlite;

use std::collections::HashMap;

use assay_contracts::ids::{EventId, OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::notification::EvaluationRetracted;
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{DeliveryStatus, WebhookAttempt, WebhookChange, WebhookDelivery};
use assay_platform::db::idempotency::{KeyReuse, Record};
use assay_platform::db::{Database, DatabaseError, on_database};
use assay_platform::web::cursor::Position;

use crate::domain::attempt::{Attempt, ClaimedMessage, LeaseId};
use crate::domain::endpoint::{Endpoint, EndpointReference};
use crate::domain::message::{Message, Notification};
use crate::domain::schedule::RetryDecision;
use crate::domain::secret::{SealedSecret, SealedSecrets};

/// Queue name, and the consumer's name in the inbox.
pub const CONSUMER: &str = "webhooks.announcements";

/// Maximum number of listed attempts of a message: the latest ones.
pub const MAX_LISTED_ATTEMPTS: i64 = 50;

/// Maximum number of stored test messages of an endpoint. Older ones are removed, sent or not.
pub const MAX_STORED_TESTS: usize = 100;

/// An endpoint to be created, in one transaction with the response of its idempotency key.
#[derive(Debug, Clone)]
pub struct Creation {
    pub endpoint: Endpoint,
    /// For a request with an idempotency key: the response to record.
    pub record: Option<Record>,
    /// Maximum number of endpoints of the organization.
    pub limit: u32,
}

/// The outcome of a [`Creation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreateOutcome {
    Created,
    IdempotencyKeyReused(KeyReuse),
    LimitReached,
}

/// A received event with its id.
#[derive(Debug, Clone)]
pub enum ReceivedEvent {
    /// Sent to the subscribed endpoints.
    Notification(EventId, Notification),
    /// Erases the messages about a deleted ticket.
    Retraction(EventId, EvaluationRetracted),
}

impl ReceivedEvent {
    fn event_id(&self) -> EventId {
        match self {
            Self::Notification(id, _) | Self::Retraction(id, _) => *id,
        }
    }
}

/// Parameters of a claim.
#[derive(Debug, Clone)]
pub struct ClaimTerms {
    pub lease: LeaseId,
    pub now: Timestamp,
    /// Expiry of the lease.
    pub lease_until: Timestamp,
    /// Maximum number of messages in all.
    pub limit: usize,
    /// Maximum number of messages to one endpoint.
    pub per_endpoint: usize,
    /// Endpoints with too many messages in flight; the claim skips them.
    pub busy: Vec<WebhookId>,
    /// Maximum number of messages in flight to the endpoints of one organization, including `in_flight`.
    pub per_organization: usize,
    /// Messages in flight by organization. Organizations with fewer come first.
    pub in_flight: HashMap<OrganizationId, usize>,
}

/// A finished attempt, to be recorded with its decision.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    pub message: ClaimedMessage,
    pub attempt: Attempt,
    pub decision: RetryDecision,
    /// An endpoint that has been failing since before this time is disabled once enough messages were given up.
    pub disable_cutoff: Option<Timestamp>,
    pub now: Timestamp,
}

/// A page of the delivery log.
#[derive(Debug, Clone)]
pub struct LogPage {
    pub endpoint: EndpointReference,
    pub status: Option<DeliveryStatus>,
    pub after: Option<Position>,
    pub limit: u32,
}

/// A message with its payload and attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDelivery {
    pub delivery: WebhookDelivery,
    /// `None` when it was erased.
    pub payload: Option<String>,
    /// The latest attempts, oldest first.
    pub attempts: Vec<WebhookAttempt>,
}

/// The outcome of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayOutcome {
    Queued,
    NotFound,
    /// The payload was erased.
    Erased,
}

/// Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct WebhookStore {
    database: Database,
}

pub fn webhook_store(database: &Database) -> WebhookStore {
    WebhookStore { database: database.clone() }
}

impl WebhookStore {
    /// Stores an endpoint, and records the response for its idempotency key, in one transaction.
    pub async fn create(&self, creation: Creation) -> Result<CreateOutcome, DatabaseError> {
        on_database!(self, write, endpoints::create(&creation))
    }

    /// Endpoints of an organization after `after`, newest first.
    pub async fn list_endpoints(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, DatabaseError> {
        on_database!(self, read, endpoints::list(organization_id, after, limit))
    }

    pub async fn find(&self, endpoint: EndpointReference) -> Result<Option<Endpoint>, DatabaseError> {
        on_database!(self, read, endpoints::find(endpoint))
    }

    /// Changes an endpoint and returns it; `None` when it does not exist.
    pub async fn change(
        &self,
        endpoint: EndpointReference,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Endpoint>, DatabaseError> {
        on_database!(self, write, endpoints::change(endpoint, change, now))
    }

    /// Deletes an endpoint with its address and secrets; [`Self::prune`] removes its messages. `false` when it does not exist.
    pub async fn delete(&self, endpoint: EndpointReference, now: Timestamp) -> Result<bool, DatabaseError> {
        on_database!(self, write, endpoints::delete(endpoint, now))
    }

    /// Replaces the secret; the current one keeps signing until `previous_until`. `false` when the endpoint does not exist.
    pub async fn rotate(
        &self,
        endpoint: EndpointReference,
        secret: SealedSecret,
        previous_until: Timestamp,
    ) -> Result<bool, DatabaseError> {
        on_database!(self, write, endpoints::rotate(endpoint, &secret, previous_until))
    }

    /// Organizations with an enabled endpoint for evaluations, by id, after `after`.
    pub async fn evaluation_subscribers(
        &self,
        after: Option<OrganizationId>,
        limit: u32,
    ) -> Result<Vec<OrganizationId>, DatabaseError> {
        on_database!(self, read, endpoints::evaluation_subscribers(after, limit))
    }

    /// Stores the messages of events and erases those of retracted tickets, in one transaction with the inbox: an event that was
    /// handled before changes nothing.
    pub async fn enqueue(
        &self,
        received: Vec<ReceivedEvent>,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        on_database!(self, write, messages::enqueue(received, due, now))
    }

    /// Stores a message to one endpoint. Of test messages the endpoint keeps the newest [`MAX_STORED_TESTS`].
    pub async fn add_message(
        &self,
        endpoint: &Endpoint,
        id: WebhookDeliveryId,
        message: Message,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let endpoint = endpoint.clone();
        on_database!(self, write, messages::add(&endpoint, id, message, now))
    }

    /// Leases due messages. Organizations with fewer messages in flight come first; otherwise the order is random.
    pub async fn claim(&self, terms: ClaimTerms) -> Result<Vec<ClaimedMessage>, DatabaseError> {
        on_database!(self, write, sending::claim(&terms))
    }

    /// Records the result of an attempt. `false` when the lease was lost or the message is gone.
    pub async fn record_attempt(&self, result: AttemptResult) -> Result<bool, DatabaseError> {
        on_database!(self, write, sending::record_attempt(&result))
    }

    /// Releases messages that were not sent; they are due at once.
    pub async fn release(&self, messages: Vec<ClaimedMessage>, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, sending::release(&messages, now))
    }

    /// A page of an endpoint's delivery log, newest first.
    pub async fn list_deliveries(&self, page: LogPage) -> Result<Vec<WebhookDelivery>, DatabaseError> {
        on_database!(self, read, messages::list(&page))
    }

    pub async fn find_delivery(
        &self,
        endpoint: EndpointReference,
        id: WebhookDeliveryId,
    ) -> Result<Option<LoggedDelivery>, DatabaseError> {
        on_database!(self, read, messages::find(endpoint, id))
    }

    /// Queues a message again, with a new retry cycle.
    pub async fn replay(
        &self,
        endpoint: EndpointReference,
        id: WebhookDeliveryId,
        now: Timestamp,
    ) -> Result<ReplayOutcome, DatabaseError> {
        on_database!(self, write, messages::replay(endpoint, id, now))
    }

    /// The secrets of endpoints, by endpoint id, after `after`.
    pub async fn all_secrets(
        &self,
        after: Option<WebhookId>,
        limit: u32,
    ) -> Result<Vec<(WebhookId, SealedSecrets)>, DatabaseError> {
        on_database!(self, read, endpoints::all_secrets(after, limit))
    }

    /// Stores re-encrypted secrets, unless the current one is no longer that of `expected`.
    pub async fn reseal(
        &self,
        id: WebhookId,
        expected: SealedSecrets,
        resealed: SealedSecrets,
    ) -> Result<(), DatabaseError> {
        on_database!(self, write, endpoints::reseal(id, &expected, &resealed))
    }

    /// Removes a batch of expired records: messages created before `cutoff` or of deleted endpoints, secrets, retractions,
    /// inbox and idempotency records. Also erases messages that a retraction missed. Returns the number of changed rows.
    pub async fn prune(&self, cutoff: Timestamp, now: Timestamp) -> Result<usize, DatabaseError> {
        on_database!(self, write, maintenance::prune(cutoff, now))
    }
}
