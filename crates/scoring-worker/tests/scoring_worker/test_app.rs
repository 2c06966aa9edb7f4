//! A running role on a new database (PostgreSQL or SQLite), with stubs of the services that it calls.

use std::collections::{HashMap, HashSet};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix_web::web::{self, Data, Json};
use actix_web::{App, HttpResponse, HttpServer};
use anyhow::{Result, anyhow};
use assay_clients::{ScoringClient, ServiceClient, http_client};
use assay_contracts::conversation::Conversation;
use assay_contracts::event::{
    ConversationAccepted, ConversationEvaluated, EvaluationDeleted, Event, TicketFacts, Topic,
};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{
    OrganizationRetention, ReadTranscripts, RetentionPage, SubscribersPage, TicketReference,
    TicketWithoutTranscript, Transcript, Transcripts,
};
use assay_contracts::notification::{EvaluationAnnounced, EvaluationRetracted};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_judge::{JudgeConfig, JudgePolicy};
use assay_messaging::{
    Bus, BusSettings, Delivery, Handler, Outcome, OutgoingEvent, PublishError, Subscription,
};
use assay_platform::auth::{Audience, ServiceClaims, ServiceTokens};
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{Phase, Readiness, Tasks, new_id, now};
use assay_scoring_worker::{Config, Dependencies, EvaluationStore, MIGRATIONS, SCHEMA, open_store, start};
use assay_testkit::ServiceDatabase;
use async_trait::async_trait;
use reqwest::{Client, Response};

const TOPICS: &[Topic] = &[
    <ConversationEvaluated>::TOPIC,
    EvaluationDeleted::TOPIC,
    EvaluationAnnounced::TOPIC,
    EvaluationRetracted::TOPIC,
];

pub struct TestApp {
    pub stub: Arc<StubServices>,
    pub received_evaluations: Arc<Mutex<Vec<ConversationEvaluated>>>,
    pub received_deletions: Arc<Mutex<Vec<EvaluationDeleted>>>,
    pub received_announcements: Arc<Mutex<Vec<EvaluationAnnounced>>>,
    pub received_retractions: Arc<Mutex<Vec<EvaluationRetracted>>>,
    /// Whether the role gets the address of the stub for webhooks, too.
    pub has_webhooks: bool,
    pub organization: OrganizationId,
    bus: Bus,
    tokens: ServiceTokens,
    http: Client,
    address: String,
    stub_url: String,
    judge_url: String,
    role: Tasks,
    stub_tasks: Tasks,
    pub database: ServiceDatabase,
}

/// Stubs ingest, agent-registry and webhooks.
#[derive(Default)]
pub struct StubServices {
    pub transcripts: Mutex<HashMap<TicketId, Transcript>>,
    pub is_unavailable: AtomicBool,
    /// Whether reading transcripts fails; reading ticket facts works.
    pub has_broken_transcripts: AtomicBool,
    pub deleted: Mutex<HashSet<TicketId>>,
    pub unreadable: Mutex<HashSet<TicketId>>,
    /// Answer as agent-registry; `None`: unavailable.
    pub retention: Mutex<Option<Vec<OrganizationRetention>>>,
    pub retention_calls: AtomicUsize,
    /// Answer as webhooks; `None`: unavailable.
    pub subscribers: Mutex<Option<Vec<OrganizationId>>>,
    pub subscriber_calls: AtomicUsize,
}

struct EventCollector {
    evaluated: Arc<Mutex<Vec<ConversationEvaluated>>>,
    deleted: Arc<Mutex<Vec<EvaluationDeleted>>>,
    announced: Arc<Mutex<Vec<EvaluationAnnounced>>>,
    retracted: Arc<Mutex<Vec<EvaluationRetracted>>>,
}

/// Collects the deliveries of this event type.
fn collect<E: Event>(received: &Mutex<Vec<E>>, deliveries: &[Delivery]) {
    if let Ok(mut received) = received.lock() {
        received.extend(deliveries.iter().filter_map(|delivery| delivery.decode().ok()));
    }
}

#[async_trait]
impl Handler for EventCollector {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        collect(&self.evaluated, deliveries);
        collect(&self.deleted, deliveries);
        collect(&self.announced, deliveries);
        collect(&self.retracted, deliveries);
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

impl TestApp {
    pub async fn on_sqlite() -> Result<Self> {
        Self::run(Self::sqlite().await?, "")
    }

    pub async fn on_postgres() -> Result<Self> {
        Self::run(Self::postgres().await?, "")
    }

    pub async fn sqlite() -> Result<ServiceDatabase> {
        ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await
    }

    pub async fn postgres() -> Result<ServiceDatabase> {
        ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await
    }

    /// An empty `judge_url` means no judge.
    pub fn run(database: ServiceDatabase, judge_url: &str) -> Result<Self> {
        let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
        let tokens = ServiceTokens::new(&"a secret of the tests of the scoring worker".to_owned().into())?;
        let mut stub_tasks = Tasks::new(Readiness::default());
        let stub = Arc::new(StubServices::default());
        let stub_url = serve_stub(&mut stub_tasks, stub.clone())?;
        let mut app = Self {
            stub,
            received_evaluations: Arc::default(),
            received_deletions: Arc::default(),
            received_announcements: Arc::default(),
            received_retractions: Arc::default(),
            has_webhooks: false,
            organization: new_id(),
            bus,
            tokens,
            http: client_builder().no_proxy().build()?,
            address: String::new(),
            stub_url,
            judge_url: judge_url.to_owned(),
            role: Tasks::new(Readiness::default()),
            stub_tasks,
            database,
        };
        app.collect_events();
        app.start()?;
        Ok(app)
    }

    /// Collects the events of the role.
    fn collect_events(&mut self) {
        let collector = EventCollector {
            evaluated: self.received_evaluations.clone(),
            deleted: self.received_deletions.clone(),
            announced: self.received_announcements.clone(),
            retracted: self.received_retractions.clone(),
        };
        let (bus, handler) = (self.bus.clone(), Arc::new(collector));
        let subscription = Subscription {
            queue: "test.conversation-evaluated",
            topics: TOPICS,
            max_batch: 16,
            max_in_flight: 16,
        };
        self.stub_tasks.spawn(Phase::Consume, "event collector", move |stop| async move {
            bus.consume(subscription, handler, stop).await
        });
    }

    /// Restarts the role on a bus with this maximum of delivery attempts.
    pub fn limit_attempts(&mut self, max_attempts: u32) -> Result<()> {
        self.stop_consuming();
        self.bus = Bus::open(&BusSettings { max_attempts, ..BusSettings::new("local:") })?;
        self.collect_events();
        self.start()
    }

    /// Starts the role; after [`Self::stop_consuming`], restarts it.
    pub fn start(&mut self) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        self.address = format!("http://{}", listener.local_addr()?);
        self.role = Tasks::new(Readiness::default());
        let dependencies = Dependencies {
            listener,
            tokens: self.tokens.clone(),
            bus: self.bus.clone(),
            ingest_url: self.stub_url.parse()?,
            registry_url: self.stub_url.parse()?,
            webhooks_url: self.has_webhooks.then(|| self.stub_url.parse()).transpose()?,
        };
        start(&config(&self.database, &self.judge_url)?, dependencies, &mut self.role)?;
        Ok(())
    }

    /// Begins the shutdown of the role.
    pub fn stop_consuming(&self) {
        self.role.stop_token(Phase::Consume).cancel();
    }

    /// Stores a conversation in the stub and publishes its acceptance.
    pub async fn accept(&self, body: &serde_json::Value) -> Result<(ConversationAccepted, OutgoingEvent)> {
        let accepted = self.store(body)?;
        let event = OutgoingEvent::new(new_id(), now(), &accepted)?;
        self.publish(&event).await?;
        Ok((accepted, event))
    }

    /// Stores a conversation in the stub.
    pub fn store(&self, body: &serde_json::Value) -> Result<ConversationAccepted> {
        self.store_as(new_id(), body)
    }

    /// Stores a conversation with this id in the stub.
    pub fn store_as(&self, ticket_id: TicketId, body: &serde_json::Value) -> Result<ConversationAccepted> {
        let conversation =
            Conversation::parse(body.to_string().as_bytes()).map_err(|error| anyhow!("{error:?}"))?;
        let ticket = TicketFacts {
            id: ticket_id,
            external_id: conversation.ticket_id.clone(),
            source: conversation.source.clone(),
            source_account_id: None,
            subject: None,
            started_at: conversation.started_at(),
            ended_at: conversation.ended_at(),
            imported_at: now(),
            agents: Vec::new(),
        };
        let transcript = Transcript { organization_id: self.organization, ticket, conversation };
        self.stub.transcripts.lock().map_err(|_| anyhow!("poisoned"))?.insert(ticket_id, transcript);
        Ok(ConversationAccepted { organization_id: self.organization, ticket_id, accepted_at: now() })
    }

    /// Publishes until the consumer has handled the event.
    pub async fn publish(&self, event: &OutgoingEvent) -> Result<()> {
        loop {
            match self.try_publish(event).await {
                Ok(()) => return Ok(()),
                Err(
                    PublishError::Unroutable { .. }
                    | PublishError::Unavailable(_)
                    | PublishError::Retry { .. },
                ) => {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Publishes once.
    pub async fn try_publish(&self, event: &OutgoingEvent) -> Result<(), PublishError> {
        self.bus.publish(std::slice::from_ref(event)).await.remove(0)
    }

    /// Publishes several events at once.
    pub async fn publish_together(&self, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
        self.bus.publish(events).await
    }

    /// Reads an evaluation as a key of `organization` with `scope`.
    pub async fn read(&self, organization: OrganizationId, scope: Scope, id: &str) -> Result<Response> {
        let tenant = Tenant { organization_id: organization, scopes: Scopes::from_iter([scope]) };
        let token = self.tokens.issue(Audience::Scoring, &ServiceClaims::Tenant(tenant), now())?;
        let url = format!("{}/internal/v1/tickets/{id}/evaluation", self.address);
        Ok(self.http.get(url).bearer_auth(token).send().await?)
    }

    /// The latest evaluation sequence of an organization.
    pub async fn progress(&self, organization: OrganizationId) -> Result<i64> {
        let url = self.address.parse()?;
        let http = http_client()?;
        let service =
            ServiceClient::new(http, url, Audience::Scoring, self.tokens.clone(), Duration::from_secs(5));
        Ok(ScoringClient::new(service).progress(organization).await?.evaluated)
    }

    /// The store of the role, for reading what it has written.
    pub fn role_store(&self) -> Result<EvaluationStore> {
        Ok(open_store(&self.database.open(SCHEMA)?))
    }

    /// Number of published deletions of this ticket.
    pub fn published_deletions(&self, ticket_id: TicketId) -> Result<usize> {
        let received = self.received_deletions.lock().map_err(|_| anyhow!("poisoned"))?;
        Ok(received.iter().filter(|event| event.ticket_id == ticket_id).count())
    }

    /// Number of published evaluations of this ticket.
    pub fn published(&self, ticket_id: TicketId) -> Result<usize> {
        let received = self.received_evaluations.lock().map_err(|_| anyhow!("poisoned"))?;
        Ok(received.iter().filter(|event| event.ticket.id == ticket_id).count())
    }
}

fn config(database: &ServiceDatabase, judge_url: &str) -> Result<Config> {
    let settings = database.settings();
    Ok(Config {
        listen: "127.0.0.1:0".parse()?,
        database_url: settings.database_url,
        database_pool_size: settings.database_pool_size,
        model: std::path::PathBuf::new(),
        weights: std::path::PathBuf::new(),
        silence_is_resolved: false,
        escalation_counts_as_not_resolved: false,
        batch_size: 16,
        max_in_flight: 64,
        ingest_deadline_milliseconds: 5000,
        outbox_age_limit_seconds: 60,
        maintenance_interval_seconds: 1,
        subscribers_poll_interval_milliseconds: 100,
        judge: JudgeConfig {
            url: judge_url.to_owned(),
            model: "judge-1".to_owned(),
            policy: JudgePolicy::Decide,
            key: String::new().into(),
            timeout_milliseconds: 60_000,
            concurrency: 4,
            attempts: 1,
            max_answer_tokens: 1000,
            max_answer_bytes: 65_536,
            max_transcript_bytes: 100_000,
            prompt_usd_per_million_tokens: 1.0,
            completion_usd_per_million_tokens: 4.0,
            daily_usd_cap: 0.0,
        },
    })
}

fn serve_stub(tasks: &mut Tasks, stub: Arc<StubServices>) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}", listener.local_addr()?);
    let data = Data::from(stub);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(data.clone())
            .route("/internal/v1/transcripts", web::post().to(read_transcripts))
            .route("/internal/v1/retention", web::get().to(retention))
            .route("/internal/v1/interest", web::get().to(subscribers))
    });
    let server = server.workers(1).disable_signals().listen(listener)?.run();
    tasks.spawn(Phase::ServeInternal, "stub services", |_| server);
    Ok(address)
}

async fn read_transcripts(stub: Data<StubServices>, request: Json<ReadTranscripts>) -> HttpResponse {
    if stub.is_unavailable.load(Ordering::SeqCst) {
        return HttpResponse::ServiceUnavailable().finish();
    }
    if stub.has_broken_transcripts.load(Ordering::SeqCst) && !request.facts_only {
        return HttpResponse::InternalServerError().finish();
    }
    let Ok(stored) = stub.transcripts.lock() else { return HttpResponse::InternalServerError().finish() };
    // Two tickets for each call: the client must page.
    let (page, unread) = request.tickets.split_at(request.tickets.len().min(2));
    let (Ok(deleted_ids), Ok(unreadable_ids)) = (stub.deleted.lock(), stub.unreadable.lock()) else {
        return HttpResponse::InternalServerError().finish();
    };
    let (mut transcripts, mut unreadable) = (Vec::new(), Vec::new());
    for found in page.iter().filter_map(|reference| stored.get(&reference.ticket_id).cloned()) {
        if request.facts_only || unreadable_ids.contains(&found.ticket.id) {
            let Transcript { organization_id, ticket, .. } = found;
            unreadable.push(TicketWithoutTranscript { organization_id, ticket });
        } else {
            transcripts.push(found);
        }
    }
    let is_deleted = |reference: &&TicketReference| deleted_ids.contains(&reference.ticket_id);
    let deleted = page.iter().filter(is_deleted).copied().collect();
    HttpResponse::Ok().json(Transcripts { transcripts, unread: unread.to_vec(), deleted, unreadable })
}

async fn subscribers(stub: Data<StubServices>) -> HttpResponse {
    let Ok(subscribers) = stub.subscribers.lock() else {
        return HttpResponse::InternalServerError().finish();
    };
    stub.subscriber_calls.fetch_add(1, Ordering::SeqCst);
    match subscribers.clone() {
        Some(organizations) => HttpResponse::Ok().json(SubscribersPage { organizations, next: None }),
        None => HttpResponse::ServiceUnavailable().finish(),
    }
}

async fn retention(stub: Data<StubServices>) -> HttpResponse {
    let Ok(retention) = stub.retention.lock() else { return HttpResponse::InternalServerError().finish() };
    stub.retention_calls.fetch_add(1, Ordering::SeqCst);
    match retention.clone() {
        Some(organizations) => HttpResponse::Ok().json(RetentionPage { organizations, next: None }),
        None => HttpResponse::ServiceUnavailable().finish(),
    }
}
