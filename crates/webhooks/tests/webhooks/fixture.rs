//! A store, and an organization for the endpoints that a test creates.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context as _, Result};
use assay_contracts::evaluation::{
    AxisBand, ChargeAssessment, ResolutionStatus, ResolvedBy, Score, ScorerKind,
};
use assay_contracts::ids::{OrganizationId, TicketId, WebhookDeliveryId, WebhookId};
use assay_contracts::notification::{
    EvaluationAnnounced, EvaluationNotificationAudit, EvaluationNotificationOutcome, EvaluationRetracted,
};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::{DeliveryStatus, WebhookDelivery, WebhookEvent};
use assay_platform::auth::KeyRing;
use assay_platform::db::Database;
use assay_platform::runtime::new_id;
use assay_testkit::{ServiceDatabase, execute_on};
use assay_webhooks::domain::attempt::{Attempt, ClaimedMessage};
use assay_webhooks::domain::endpoint::{Endpoint, EndpointReference};
use assay_webhooks::domain::message::Notification;
use assay_webhooks::domain::schedule::RetryDecision;
use assay_webhooks::domain::secret::{SECRET_BYTES, SealedSecrets, Secret};
use assay_webhooks::store::{
    AttemptResult, ClaimTerms, CreateOutcome, Creation, LogPage, ReceivedEvent, WebhookStore, webhook_store,
};
use assay_webhooks::{MIGRATIONS, SCHEMA};

pub const NOW: Timestamp = Timestamp::saturating_from_millis(1_795_158_000_000);
/// In seconds.
pub const DAY: i64 = 24 * 60 * 60;
/// Maximum number of endpoints of an organization.
pub const ENDPOINT_LIMIT: u32 = 5;

/// [`NOW`] plus `seconds`.
pub fn later(seconds: i64) -> Timestamp {
    NOW.plus_millis(seconds * 1_000)
}

pub struct Fixture {
    pub store: WebhookStore,
    pub organization_id: OrganizationId,
    pub keys: KeyRing,
    pub service_database: ServiceDatabase,
    database: Database,
}

impl Fixture {
    pub async fn on_sqlite() -> Result<Self> {
        Self::on(ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?)
    }

    pub async fn on_postgres() -> Result<Self> {
        Self::on(ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?)
    }

    fn on(service_database: ServiceDatabase) -> Result<Self> {
        let keys = KeyRing::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into())?;
        let database = service_database.open(SCHEMA)?;
        let store = webhook_store(&database);
        Ok(Self { store, organization_id: new_id(), keys, service_database, database })
    }

    pub fn retracted(&self, ticket_id: TicketId) -> ReceivedEvent {
        let organization_id = self.organization_id;
        let retracted = EvaluationRetracted { organization_id, ticket_id, deleted_at: NOW };
        ReceivedEvent::Retraction(new_id(), retracted)
    }

    /// Runs raw SQL and returns the number of changed rows.
    pub async fn execute(&self, statement: &'static str) -> Result<usize> {
        execute_on(&self.database, statement).await
    }

    /// An endpoint that is not stored yet.
    pub fn endpoint(&self, events: &[WebhookEvent]) -> Result<Endpoint> {
        let id = new_id();
        let current = Secret::from([7; SECRET_BYTES]).seal(&self.keys, id)?;
        Ok(Endpoint {
            id,
            organization_id: self.organization_id,
            url: "https://hooks.example.com/".to_owned(),
            description: Some("Finance".to_owned()),
            events: events.iter().copied().collect::<BTreeSet<_>>(),
            low_score_below: Score::nearest(3.0),
            enabled: true,
            disabled_reason: None,
            secrets: SealedSecrets { current, previous: None },
            failing_since: None,
            created_at: NOW,
            updated_at: NOW,
        })
    }

    /// An endpoint for `evaluation.completed`.
    pub async fn create_endpoint(&self) -> Result<Endpoint> {
        self.create_endpoint_at("https://hooks.example.com/").await
    }

    /// An endpoint with `count` messages, due at [`NOW`]; the first endpoint of its organization.
    pub async fn create_with_messages(&self, count: usize) -> Result<Endpoint> {
        let endpoint = self.create_endpoint().await?;
        self.announce(count).await?;
        Ok(endpoint)
    }

    pub async fn create_endpoint_at(&self, url: &str) -> Result<Endpoint> {
        let endpoint = self.endpoint(&[WebhookEvent::EvaluationCompleted])?;
        let endpoint = Endpoint { url: url.to_owned(), ..endpoint };
        let creation = Creation { endpoint: endpoint.clone(), record: None, limit: u32::MAX };
        assert_eq!(self.store.create(creation).await?, CreateOutcome::Created);
        Ok(endpoint)
    }

    pub fn announced(&self, ticket_id: TicketId) -> ReceivedEvent {
        let axis_score = Score::nearest(2.0);
        let audit = EvaluationNotificationAudit {
            resolution_status: ResolutionStatus::NotResolved,
            resolved_by: ResolvedBy::None,
            charge_assessment: ChargeAssessment::Disputed,
            charge_reasons: Vec::new(),
            scorer: ScorerKind::Builtin,
        };
        let announced = EvaluationAnnounced {
            organization_id: self.organization_id,
            ticket_id,
            external_ticket_id: "T-1".to_owned(),
            source: "custom".to_owned(),
            source_account_id: None,
            evaluation_id: new_id(),
            evaluated_at: NOW,
            outcome: EvaluationNotificationOutcome::Scored { axis_score, axis_band: AxisBand::Poor, audit },
        };
        ReceivedEvent::Notification(new_id(), Notification::Evaluation(announced))
    }

    /// Enqueues `count` messages to every endpoint, due at [`NOW`].
    pub async fn announce(&self, count: usize) -> Result<()> {
        self.announce_at(count, NOW).await
    }

    /// Enqueues `count` messages to every endpoint, due at `now`.
    pub async fn announce_at(&self, count: usize, now: Timestamp) -> Result<()> {
        let received = (0..count).map(|_| self.announced(new_id())).collect();
        Ok(self.store.enqueue(received, now, now).await?)
    }

    /// At most `limit` messages, `per_endpoint` of them to one endpoint, leased for 30 seconds.
    pub fn terms(&self, now: Timestamp, limit: usize, per_endpoint: usize) -> ClaimTerms {
        let lease_until = now.plus_millis(30_000);
        ClaimTerms {
            lease: new_id(),
            now,
            lease_until,
            limit,
            per_endpoint,
            busy: Vec::new(),
            per_organization: usize::MAX,
            in_flight: HashMap::new(),
        }
    }

    /// Claims all due messages.
    pub async fn claim_all(&self, now: Timestamp) -> Result<Vec<ClaimedMessage>> {
        Ok(self.store.claim(self.terms(now, 99, 99)).await?)
    }

    pub async fn claim_one(&self, now: Timestamp) -> Result<ClaimedMessage> {
        let mut claims = self.store.claim(self.terms(now, 1, 1)).await?;
        claims.pop().context("nothing is due")
    }

    /// Records an attempt that was answered with this status code. Endpoints that fail for five days may be disabled.
    pub async fn record_attempt(
        &self,
        message: ClaimedMessage,
        code: u16,
        decision: RetryDecision,
        now: Timestamp,
    ) -> Result<bool> {
        let attempt = Attempt::answered(now, 12, code);
        let disable_cutoff = Some(now.plus_millis(-5 * DAY * 1_000));
        let result = AttemptResult { message, attempt, decision, disable_cutoff, now };
        Ok(self.store.record_attempt(result).await?)
    }

    /// Claims a message, and records that its last attempt failed.
    pub async fn give_up_one(&self, now: Timestamp) -> Result<()> {
        let claim = self.claim_one(now).await?;
        self.record_attempt(claim, 500, RetryDecision::GivenUp, now).await?;
        Ok(())
    }

    pub async fn log(
        &self,
        endpoint_id: WebhookId,
        status: Option<DeliveryStatus>,
    ) -> Result<Vec<WebhookDelivery>> {
        let page = LogPage { endpoint: self.reference(endpoint_id), status, after: None, limit: 100 };
        Ok(self.store.list_deliveries(page).await?)
    }

    pub async fn delivery(&self, endpoint_id: WebhookId, id: WebhookDeliveryId) -> Result<WebhookDelivery> {
        let found = self.store.find_delivery(self.reference(endpoint_id), id).await?;
        Ok(found.context("no such delivery")?.delivery)
    }

    /// The endpoint as one of the organization.
    pub fn reference(&self, id: WebhookId) -> EndpointReference {
        EndpointReference { organization_id: self.organization_id, id }
    }

    pub async fn find(&self, id: WebhookId) -> Result<Endpoint> {
        self.store.find(self.reference(id)).await?.context("no such endpoint")
    }
}
