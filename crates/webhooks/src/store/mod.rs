//! What is kept: endpoints, messages to them, and how those went. One trait with two plain implementations.

mod postgres;
mod record;
mod sqlite;

use std::sync::Arc;

use assay_contracts::ids::{EventId, OrganizationId, TicketId, WebhookDeliveryId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{DeliveryStatus, WebhookAttempt, WebhookChange, WebhookDelivery};
use assay_platform::db::idempotency::{Earlier, Record};
use assay_platform::db::{Database, DatabaseError};
use async_trait::async_trait;

use self::postgres::PostgresStore;
use self::sqlite::SqliteStore;
use crate::domain::attempt::{Attempt, Claim, Lease};
use crate::domain::endpoint::Endpoint;
use crate::domain::message::{Announcement, Message};
use crate::domain::position::Position;
use crate::domain::schedule::Verdict;
use crate::domain::secret::{SealedSecret, SealedSecrets};

/// The name under which handled events are recorded.
pub const CONSUMER: &str = "webhooks.announcements";

/// Attempts of a message that are shown at most: the latest.
pub const ATTEMPTS_SHOWN: i64 = 50;

/// Everything that changes when an endpoint is made: all of it or nothing.
#[derive(Debug, Clone)]
pub struct Creation {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// For a request with an idempotency key: the answer it will get.
    pub record: Option<Record>,
    /// How many endpoints the organization may have.
    pub limit: u32,
}

/// What became of a [`Creation`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It took place.
    New,
    /// Nothing was changed: the request's idempotency key was used before.
    Earlier(Earlier),
    /// Nothing was changed: the organization has as many endpoints as it may have.
    TooMany,
}

/// Something that was announced, and the event that brought it.
#[derive(Debug, Clone)]
pub enum Received {
    /// To be told to whoever wants to know.
    Announced(EventId, Announcement),
    /// To be forgotten.
    Retracted(EventId, TicketId, Timestamp),
}

impl Received {
    fn event_id(&self) -> EventId {
        match self {
            Self::Announced(id, _) | Self::Retracted(id, ..) => *id,
        }
    }
}

/// Which messages are taken to be sent.
#[derive(Debug, Clone)]
pub struct ClaimTerms {
    /// The name of the hold.
    pub lease: Lease,
    /// The moment of the claim.
    pub now: Timestamp,
    /// When the hold ends by itself.
    pub until: Timestamp,
    /// Messages at most.
    pub limit: usize,
    /// Messages to one endpoint at most.
    pub per_endpoint: usize,
    /// Endpoints that get nothing more at present.
    pub busy: Vec<WebhookId>,
}

/// How an attempt went, and what follows from it.
#[derive(Debug, Clone)]
pub struct Settlement {
    /// The message and the hold on it.
    pub claim: Claim,
    /// How it went.
    pub attempt: Attempt,
    /// What follows.
    pub verdict: Verdict,
    /// An endpoint that has been failing since before this moment is disabled, when enough was given up.
    pub failing_since_before: Option<Timestamp>,
    /// When.
    pub now: Timestamp,
}

/// A page of the log.
#[derive(Debug, Clone)]
pub struct LogPage {
    /// The tenant.
    pub organization_id: OrganizationId,
    /// The endpoint.
    pub endpoint_id: WebhookId,
    /// Only messages in this state.
    pub status: Option<DeliveryStatus>,
    /// From behind this one on.
    pub after: Option<Position>,
    /// Messages at most.
    pub limit: u32,
}

/// A message of the log with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// The message.
    pub delivery: WebhookDelivery,
    /// What is sent; absent when it was erased.
    pub payload: Option<String>,
    /// The latest attempts, oldest first.
    pub attempts: Vec<WebhookAttempt>,
}

/// What became of a wish to send a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replayed {
    /// It is sent soon.
    Queued,
    /// There is no such message.
    NotFound,
    /// What it said was erased.
    Erased,
}

/// What the role asks of its database.
#[async_trait]
pub trait WebhookStore: Send + Sync {
    /// Stores an endpoint and the answer to its idempotency key, in one transaction.
    async fn create(&self, creation: Creation) -> Result<Created, DatabaseError>;

    /// Endpoints of an organization, newest first, from behind `after` on, at most `limit`.
    async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, DatabaseError>;

    /// An endpoint of an organization.
    async fn find(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
    ) -> Result<Option<Endpoint>, DatabaseError>;

    /// Changes an endpoint: what it is then, or none when there is none.
    async fn change(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Endpoint>, DatabaseError>;

    /// Deletes an endpoint with its address and secrets at once; its messages follow by [`Self::prune`]. Whether there was one.
    async fn delete(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
        now: Timestamp,
    ) -> Result<bool, DatabaseError>;

    /// Gives an endpoint another secret; the one that it has goes on signing until `previous_until`. Whether there is one.
    async fn rotate(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
        secret: SealedSecret,
        previous_until: Timestamp,
    ) -> Result<bool, DatabaseError>;

    /// Organizations that want to be told of evaluations, by id, from behind `after` on, at most `limit`.
    async fn interested(
        &self,
        after: Option<OrganizationId>,
        limit: u32,
    ) -> Result<Vec<OrganizationId>, DatabaseError>;

    /// Makes messages of what was announced, and forgets what was retracted, in one transaction with the inbox; what was
    /// handled before changes nothing. Messages are due at `due`.
    async fn take_in(
        &self,
        received: Vec<Received>,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<(), DatabaseError>;

    /// Stores a message to an endpoint.
    async fn add(
        &self,
        endpoint: &Endpoint,
        id: WebhookDeliveryId,
        message: Message,
        now: Timestamp,
    ) -> Result<(), DatabaseError>;

    /// Takes messages that are due, of endpoints chosen by lot.
    async fn claim(&self, terms: ClaimTerms) -> Result<Vec<Claim>, DatabaseError>;

    /// Records an attempt and what follows from it. `false` when the message is held by another, or gone.
    async fn settle(&self, settlement: Settlement) -> Result<bool, DatabaseError>;

    /// Lets go of messages that were not sent. They are due at once.
    async fn hand_back(&self, claims: Vec<Claim>, now: Timestamp) -> Result<(), DatabaseError>;

    /// A page of the log of an endpoint, newest first.
    async fn log(&self, page: LogPage) -> Result<Vec<WebhookDelivery>, DatabaseError>;

    /// A message to an endpoint.
    async fn find_delivery(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookId,
        id: WebhookDeliveryId,
    ) -> Result<Option<LoggedDelivery>, DatabaseError>;

    /// Has a message sent again, with the schedule from its beginning.
    async fn replay(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookId,
        id: WebhookDeliveryId,
        now: Timestamp,
    ) -> Result<Replayed, DatabaseError>;

    /// Endpoints by id from behind `after` on, with their secrets.
    async fn secrets(
        &self,
        after: Option<WebhookId>,
        limit: u32,
    ) -> Result<Vec<(WebhookId, SealedSecrets)>, DatabaseError>;

    /// Replaces secrets by the same ones encrypted anew, unless they were changed meanwhile.
    async fn reseal(
        &self,
        id: WebhookId,
        before: SealedSecrets,
        anew: SealedSecrets,
    ) -> Result<(), DatabaseError>;

    /// Removes some messages that were made before `before` or whose endpoint was deleted, some events that were handled long
    /// ago, some answers that are not given again, and secrets that sign no more; answers how many.
    async fn prune(&self, before: Timestamp, now: Timestamp) -> Result<usize, DatabaseError>;
}

/// The store in `database`.
pub fn webhook_store(database: &Database) -> Arc<dyn WebhookStore> {
    match database {
        Database::Postgres(postgres) => Arc::new(PostgresStore::new(postgres.clone())),
        Database::Sqlite(sqlite) => Arc::new(SqliteStore::new(sqlite.clone())),
    }
}
