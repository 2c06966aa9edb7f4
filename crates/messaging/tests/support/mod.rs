//! Support for the tests of the bus: events, scripted handlers, waiting with a deadline.

#![allow(dead_code, unused_macros, reason = "every suite uses a part of it")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[macro_use]
pub mod relaying;
pub mod wire;

use std::collections::HashSet;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use assay_contracts::agent::AgentFacts;
use assay_contracts::event::{AgentCreated, ConversationAccepted, Event as _};
use assay_contracts::ids::EventId;
use assay_messaging::{
    Bus, BusSettings, Delivery, Handler, Outcome, OutgoingEvent, PublishError, RetryDelay, Subscription,
};
use assay_platform::runtime::{new_id, now};
use assay_testkit::eventually_within;
use assay_testkit::proxy::Proxy;
use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::wire::Wire;

/// Far longer than any step takes on a busy machine.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A queue of accepted conversations.
pub const ACCEPTED: Subscription = Subscription {
    queue: "scorer.conversation-accepted",
    topics: &[ConversationAccepted::TOPIC],
    max_batch: 16,
    max_in_flight: 64,
};

/// A queue of created agents.
pub const AGENTS: Subscription =
    Subscription { queue: "auditor.agent", topics: &[AgentCreated::TOPIC], ..ACCEPTED };

/// The local bus with default settings.
pub fn local_bus() -> Bus {
    Bus::open(&BusSettings::new("local:")).expect("the address of the local bus")
}

/// RabbitMQ under a new namespace, with short delays and three attempts.
pub fn rabbit_settings(url: impl Into<secrecy::SecretString>) -> Result<BusSettings> {
    Ok(BusSettings {
        namespace: assay_testkit::random_name("messaging")?,
        retry_delays: [100, 300].map(RetryDelay::from_millis).to_vec(),
        max_attempts: 3,
        ..BusSettings::new(url)
    })
}

pub fn rabbit_bus() -> Result<Bus> {
    Ok(Bus::open(&rabbit_settings(assay_testkit::services::rabbit()?)?)?)
}

/// The same with a connection beside it, and the settings for further buses.
pub async fn rabbit() -> Result<(Bus, Wire, BusSettings)> {
    let settings = rabbit_settings(assay_testkit::services::rabbit()?)?;
    Ok((Bus::open(&settings)?, Wire::open(&settings).await?, settings))
}

/// The same after the queue of a subscription was declared.
pub async fn rabbit_with(subscription: Subscription) -> Result<(Bus, Wire, BusSettings)> {
    let (bus, wire, settings) = rabbit().await?;
    declare(&bus, subscription).await?;
    Ok((bus, wire, settings))
}

/// A bus whose connections can be cut.
pub async fn behind_a_proxy() -> Result<(Proxy, Bus)> {
    let url = assay_testkit::services::rabbit()?;
    let (credentials, rest) = url.split_once('@').context("an address with credentials")?;
    let (server, virtual_host) = rest.split_once('/').context("an address with a virtual host")?;
    let proxy = Proxy::to(server.to_owned()).await?;
    let bus = Bus::open(&rabbit_settings(format!("{credentials}@{}/{virtual_host}", proxy.address()))?)?;
    Ok((proxy, bus))
}

/// An event that needs a consumer.
pub fn accepted() -> OutgoingEvent {
    let event = ConversationAccepted { organization_id: new_id(), ticket_id: new_id(), accepted_at: now() };
    OutgoingEvent::new(new_id(), now(), &event).expect("an event can be encoded")
}

/// An event that needs no consumer.
pub fn agent_created() -> OutgoingEvent {
    agent_named("Fin".to_owned())
}

/// An event that needs no consumer, with a name of any size.
pub fn agent_named(name: String) -> OutgoingEvent {
    let agent = AgentFacts { id: new_id(), external_id: "fin".to_owned(), name };
    let event = AgentCreated { organization_id: new_id(), agent, created_at: now() };
    OutgoingEvent::new(new_id(), now(), &event).expect("an event can be encoded")
}

/// A handler that records its deliveries and returns the outcomes of its script.
pub struct Scripted {
    script: Box<dyn Fn(&Delivery) -> Outcome + Send + Sync>,
    gate: Semaphore,
    batches: Mutex<Vec<Vec<Delivery>>>,
    begun: Mutex<usize>,
}

impl Scripted {
    /// A handler whose calls return at once.
    pub fn new(script: impl Fn(&Delivery) -> Outcome + Send + Sync + 'static) -> Arc<Self> {
        let handler = Self::gated(script);
        handler.open();
        handler
    }

    /// A handler whose calls return only after [`Self::open`].
    pub fn gated(script: impl Fn(&Delivery) -> Outcome + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Box::new(script),
            gate: Semaphore::new(0),
            batches: Mutex::default(),
            begun: Mutex::default(),
        })
    }

    pub fn done() -> Arc<Self> {
        Self::new(|_| Outcome::Done)
    }

    pub fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// Deliveries of all calls, finished or not.
    pub fn begun(&self) -> usize {
        *self.begun.lock().unwrap()
    }

    /// Deliveries of finished calls, by batch.
    pub fn batches(&self) -> Vec<Vec<Delivery>> {
        self.batches.lock().unwrap().clone()
    }

    pub fn deliveries(&self) -> Vec<Delivery> {
        self.batches().concat()
    }

    pub fn ids(&self) -> HashSet<EventId> {
        self.deliveries().iter().map(|delivery| delivery.id).collect()
    }

    /// Waits until each of the events was handled at least once.
    pub async fn wait_for_all(&self, events: &[OutgoingEvent]) -> Result<()> {
        let is_there = || {
            let ids = self.ids();
            events.iter().all(|event| ids.contains(&event.id()))
        };
        eventually("all events", || async { Ok(is_there()) }).await
    }

    pub async fn wait_for(&self, deliveries: usize) -> Result<()> {
        let what = format!("{deliveries} deliveries");
        eventually(&what, || async { Ok(self.deliveries().len() >= deliveries) }).await
    }
}

#[async_trait]
impl Handler for Scripted {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        *self.begun.lock().unwrap() += deliveries.len();
        let _passed = self.gate.acquire().await.expect("the gate is never removed");
        self.batches.lock().unwrap().push(deliveries.to_vec());
        deliveries.iter().map(|delivery| (self.script)(delivery)).collect()
    }
}

/// A handler that hangs on one event and is done with all others.
pub struct HangsOnOne {
    hanging: EventId,
    done: Mutex<HashSet<EventId>>,
}

impl HangsOnOne {
    pub fn new(hanging: EventId) -> Arc<Self> {
        Arc::new(Self { hanging, done: Mutex::default() })
    }

    pub fn done(&self) -> HashSet<EventId> {
        self.done.lock().unwrap().clone()
    }
}

#[async_trait]
impl Handler for HangsOnOne {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        if deliveries.iter().any(|delivery| delivery.id == self.hanging) {
            std::future::pending::<()>().await;
        }
        self.done.lock().unwrap().extend(deliveries.iter().map(|delivery| delivery.id));
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

/// A task that ends with its test.
pub struct Running {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    pub fn start<F>(task: impl FnOnce(CancellationToken) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let future = task(stop.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(future);
        Self { stop, tasks }
    }

    pub fn consumer(bus: &Bus, subscription: Subscription, handler: Arc<dyn Handler>) -> Self {
        let bus = bus.clone();
        Self::start(|stop| async move { bus.consume(subscription, handler, stop).await })
    }

    /// A consumer whose handler is done with every event.
    pub fn done(bus: &Bus, subscription: Subscription) -> (Arc<Scripted>, Self) {
        let handler = Scripted::done();
        let consumer = Self::consumer(bus, subscription, handler.clone());
        (handler, consumer)
    }

    /// Requests the stop without waiting for it.
    pub fn begin_stop(&self) {
        self.stop.cancel();
    }

    pub fn is_running(&mut self) -> bool {
        self.tasks.try_join_next().is_none()
    }

    /// Aborts the task, like a crash.
    pub async fn abort(mut self) {
        self.tasks.shutdown().await;
    }

    /// Stops the task and waits for its end.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        timeout(DEADLINE, async {
            while self.tasks.join_next().await.transpose()?.is_some() {}
            anyhow::Ok(())
        })
        .await
        .context("the task did not stop")?
    }
}

/// Waits until a condition holds.
pub async fn eventually<F: Future<Output = Result<bool>>>(
    what: &str,
    condition: impl FnMut() -> F,
) -> Result<()> {
    eventually_within(DEADLINE, what, condition).await
}

/// Waits until all started consumers are connected.
pub async fn connected(bus: &Bus) -> Result<()> {
    tokio::task::yield_now().await;
    eventually("the bus to be ready", || async { Ok(bus.ping().await.is_ok()) }).await
}

/// Creates the queue of a subscription by running a consumer once.
pub async fn declare(bus: &Bus, subscription: Subscription) -> Result<()> {
    let consumer = Running::consumer(bus, subscription, Scripted::done());
    connected(bus).await?;
    consumer.stop().await
}

/// Publishes one event with [`publish_all`].
pub async fn publish(bus: &Bus, event: &OutgoingEvent) -> Result<()> {
    let results = publish_all(bus, std::slice::from_ref(event)).await;
    results.into_iter().collect::<Result<(), _>>().context("the event was not published")
}

/// Publishes events of one topic; retries while its consumer is starting.
pub async fn publish_all(bus: &Bus, events: &[OutgoingEvent]) -> Vec<Result<(), PublishError>> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let results = bus.publish(events).await;
        // No consumer was started yet, or (on the local bus) the last one has stopped and the next one has not started.
        let stopped = PublishError::Unavailable("the consumer has stopped".to_owned());
        let has_no_consumer = |result: &Result<(), PublishError>| match result {
            Err(PublishError::Unroutable { .. }) => true,
            Err(error) => *error == stopped,
            Ok(()) => false,
        };
        if !results.iter().all(has_no_consumer) || Instant::now() > deadline {
            return results;
        }
        sleep(Duration::from_millis(10)).await;
    }
}
