//! The store on both databases: `postgres.rs` and `sqlite.rs` each compile this folder as their module `sql`. Every write
//! runs in one transaction (`Database::write`).

pub(super) mod endpoints;
mod maintenance;
mod messages;
pub(super) mod record;
mod schema;
pub(super) mod sending;

use assay_contracts::ids::{OrganizationId, WebhookDeliveryId, WebhookId};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{WebhookChange, WebhookDelivery};
use assay_platform::db::DatabaseError;
use assay_platform::web::cursor::Position;
use async_trait::async_trait;

use super::{Connection, Database, Id, find_for_update, lock_creation, lock_due_messages};
use crate::domain::attempt::Claim;
use crate::domain::endpoint::Endpoint;
use crate::domain::message::Message;
use crate::domain::secret::{SealedSecret, SealedSecrets};
use crate::store::{
    AttemptResult, ClaimTerms, CreateOutcome, Creation, LogPage, LoggedDelivery, ReceivedEvent,
    ReplayOutcome, WebhookStore,
};

pub(in crate::store) struct SqlStore {
    pub(in crate::store) database: Database,
}

#[async_trait]
impl WebhookStore for SqlStore {
    async fn create(&self, creation: Creation) -> Result<CreateOutcome, DatabaseError> {
        self.database.write(move |connection| endpoints::create(connection, &creation)).await
    }

    async fn page(
        &self,
        organization_id: OrganizationId,
        after: Option<Position>,
        limit: u32,
    ) -> Result<Vec<Endpoint>, DatabaseError> {
        self.database.read(move |connection| endpoints::page(connection, organization_id, after, limit)).await
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
    ) -> Result<Option<Endpoint>, DatabaseError> {
        self.database.read(move |connection| endpoints::find(connection, organization_id, id)).await
    }

    async fn change(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
        change: WebhookChange,
        now: Timestamp,
    ) -> Result<Option<Endpoint>, DatabaseError> {
        self.database
            .write(move |connection| endpoints::change(connection, organization_id, id, change, now))
            .await
    }

    async fn delete(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
        now: Timestamp,
    ) -> Result<bool, DatabaseError> {
        self.database.write(move |connection| endpoints::delete(connection, organization_id, id, now)).await
    }

    async fn rotate(
        &self,
        organization_id: OrganizationId,
        id: WebhookId,
        secret: SealedSecret,
        previous_until: Timestamp,
    ) -> Result<bool, DatabaseError> {
        self.database
            .write(move |connection| {
                endpoints::rotate(connection, organization_id, id, &secret, previous_until)
            })
            .await
    }

    async fn evaluation_subscribers(
        &self,
        after: Option<OrganizationId>,
        limit: u32,
    ) -> Result<Vec<OrganizationId>, DatabaseError> {
        self.database
            .read(move |connection| endpoints::evaluation_subscribers(connection, after, limit))
            .await
    }

    async fn enqueue(
        &self,
        received: Vec<ReceivedEvent>,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        self.database.write(move |connection| messages::enqueue(connection, received, due, now)).await
    }

    async fn add(
        &self,
        endpoint: &Endpoint,
        id: WebhookDeliveryId,
        message: Message,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        let endpoint = endpoint.clone();
        self.database.write(move |connection| messages::add(connection, &endpoint, id, message, now)).await
    }

    async fn claim(&self, terms: ClaimTerms) -> Result<Vec<Claim>, DatabaseError> {
        self.database.write(move |connection| sending::claim(connection, &terms)).await
    }

    async fn record_attempt(&self, result: AttemptResult) -> Result<bool, DatabaseError> {
        self.database.write(move |connection| sending::record_attempt(connection, &result)).await
    }

    async fn release(&self, claims: Vec<Claim>, now: Timestamp) -> Result<(), DatabaseError> {
        self.database.write(move |connection| sending::release(connection, &claims, now)).await
    }

    async fn log(&self, page: LogPage) -> Result<Vec<WebhookDelivery>, DatabaseError> {
        self.database.read(move |connection| messages::log(connection, &page)).await
    }

    async fn find_delivery(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookId,
        id: WebhookDeliveryId,
    ) -> Result<Option<LoggedDelivery>, DatabaseError> {
        self.database
            .read(move |connection| messages::find(connection, organization_id, endpoint_id, id))
            .await
    }

    async fn replay(
        &self,
        organization_id: OrganizationId,
        endpoint_id: WebhookId,
        id: WebhookDeliveryId,
        now: Timestamp,
    ) -> Result<ReplayOutcome, DatabaseError> {
        self.database
            .write(move |connection| messages::replay(connection, organization_id, endpoint_id, id, now))
            .await
    }

    async fn secrets(
        &self,
        after: Option<WebhookId>,
        limit: u32,
    ) -> Result<Vec<(WebhookId, SealedSecrets)>, DatabaseError> {
        self.database.read(move |connection| endpoints::all_secrets(connection, after, limit)).await
    }

    async fn reseal(
        &self,
        id: WebhookId,
        expected: SealedSecrets,
        resealed: SealedSecrets,
    ) -> Result<(), DatabaseError> {
        self.database.write(move |connection| endpoints::reseal(connection, id, &expected, &resealed)).await
    }

    async fn prune(&self, cutoff: Timestamp, now: Timestamp) -> Result<usize, DatabaseError> {
        self.database.write(move |connection| maintenance::prune(connection, cutoff, now)).await
    }
}
