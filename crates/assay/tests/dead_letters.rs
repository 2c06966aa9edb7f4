//! `assay dead-letter` and `assay outbox` on real dead letters.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use assay_contracts::event::{ConversationAccepted, Event as _};
use assay_contracts::ids::OrganizationId;
use assay_messaging::outbox::{self, FastPathClaim, Outbox, relay};
use assay_messaging::{Bus, BusSettings, Delivery, Handler, Outcome, OutgoingEvent, Subscription};
use assay_platform::db::{Database, DatabaseSettings, Migrations};
use assay_platform::runtime::{new_id, now};
use assay_testkit::eventually;
use async_trait::async_trait;
use lapin::message::BasicGetMessage;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Time limit of one attempt to open a connection and send its first request.
const ATTEMPT: Duration = Duration::from_secs(5);

/// Time limit for a message to arrive in a queue.
const DEADLINE: Duration = Duration::from_secs(20);

const ACCEPTED: Subscription = Subscription {
    queue: assay_scoring_worker::QUEUE,
    topics: &[ConversationAccepted::TOPIC],
    max_batch: 1,
    max_in_flight: 1,
};

/// A message that is no event. Lists must never show its content.
const FOREIGN_MESSAGE: &str = r#"{"words":"of a customer"}"#;

#[tokio::test]
async fn rabbitmq_list_shows_reasons_but_no_contents() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    let list = broker.list();
    assert!(list.contains("scoring-worker.conversation-accepted: 2 dead letters\n"), "{list}");
    assert!(list.contains("export.conversation-evaluated: 0 dead letters\n"), "{list}");
    assert!(list.contains("export-worker.export-requested: 0 dead letters\n"), "{list}");
    let event_line = list.lines().find(|line| line.contains(&broker.event_ids[0])).context("the event")?;
    assert!(event_line.contains("conversation.accepted.v1"), "{event_line}");
    assert!(event_line.ends_with("attempts: 1  unknown kind of author"), "{event_line}");
    assert!(list.contains("not a CloudEvents 1.0 envelope"), "{list}");
    assert!(!list.contains("of a customer"), "{list}");
    Ok(())
}

#[tokio::test]
async fn rabbitmq_show_prints_one_dead_letter() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    let shown = broker.assay(&["dead-letter", "show", &broker.id_of_foreign_message()?]);
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(text(&shown.stdout), format!("{FOREIGN_MESSAGE}\n"));
    Ok(())
}

#[tokio::test]
async fn rabbitmq_dead_letters_are_dropped_and_retried() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    let dropped = broker.assay(&["dead-letter", "drop", &broker.id_of_foreign_message()?]);
    assert!(dropped.status.success(), "{dropped:?}");
    assert!(broker.list().contains("scoring-worker.conversation-accepted: 1 dead letter\n"));

    let retried = broker.assay(&["dead-letter", "retry", "--all", "--queue", ACCEPTED.queue]);
    assert!(retried.status.success(), "{retried:?}");
    assert!(broker.list().contains("scoring-worker.conversation-accepted: 0 dead letters\n"));
    let handler = Arc::new(Recorder::answering(Outcome::Done));
    let _consumer = consume(&broker.bus, handler.clone());
    eventually("the second delivery", || async { Ok(handler.ids() == broker.event_ids) }).await
}

#[tokio::test]
async fn batched_dead_events_are_handled_one_by_one() -> Result<()> {
    let broker = Broker::with_dead_batch(3).await?;
    let list = broker.list();
    assert!(list.contains("scoring-worker.conversation-accepted: 3 dead letters\n"), "{list}");
    assert!(broker.event_ids.iter().all(|id| list.contains(id)), "{list}");
    assert!(list.contains("(one of 3 events in one message)"), "{list}");
    let [retried, dropped, kept] = broker.event_ids.as_slice() else { panic!("three events") };
    let shown = broker.succeed(&["dead-letter", "show", kept]);
    assert!(shown.contains(kept) && !shown.contains(retried), "{shown}");

    broker.succeed(&["dead-letter", "drop", dropped]);
    broker.succeed(&["dead-letter", "retry", retried]);
    let list = broker.list();
    assert!(list.contains("scoring-worker.conversation-accepted: 1 dead letter\n"), "{list}");
    assert!(list.contains(kept) && list.contains("its consumers ended"), "{list}");
    let handler = Arc::new(Recorder::answering(Outcome::Done));
    let _consumer = consume(&broker.bus, handler.clone());
    eventually("the second delivery", || async { Ok(handler.ids() == [retried.clone()]) }).await
}

#[tokio::test]
async fn unknown_dead_letter_id_is_an_error_without_effect() -> Result<()> {
    let broker = Broker::with_dead_letters().await?;
    for action in ["show", "retry", "drop"] {
        let output = broker.assay(&["dead-letter", action, "mistyped"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(text(&output.stderr).contains("id mistyped; `assay dead-letter list`"), "{output:?}");
    }
    assert!(broker.list().contains("scoring-worker.conversation-accepted: 2 dead letters\n"));
    let unknown = broker.assay(&["dead-letter", "list", "--queue", "mistyped"]);
    assert_eq!(unknown.status.code(), Some(1), "{unknown:?}");
    let without_ids = broker.assay(&["dead-letter", "drop"]);
    assert_eq!(without_ids.status.code(), Some(2), "{without_ids:?}");
    Ok(())
}

#[tokio::test]
async fn standalone_dead_events_are_listed_shown_retried_and_dropped() -> Result<()> {
    let standalone = Standalone::with_dead_events(3).await?;
    let ids = standalone.ids.clone();
    let list = standalone.succeed(&["dead-letter", "list"]);
    assert!(list.contains("ingest: 3 dead letters\n") && list.contains("export: 0 dead letters\n"), "{list}");
    assert!(ids.iter().all(|id| list.contains(id)), "{list}");
    assert!(list.contains("consumer rejected the event: unknown kind of author"), "{list}");
    assert!(!list.contains(&standalone.organization_id), "{list}");
    let shown = standalone.succeed(&["dead-letter", "show", &ids[0]]);
    assert!(shown.contains(&ids[0]) && shown.contains("specversion"), "{shown}");

    standalone.succeed(&["dead-letter", "retry", &ids[0]]);
    assert_eq!(standalone.pending_and_dead().await?, (1, 2));
    standalone.succeed(&["dead-letter", "drop", &ids[1]]);
    assert_eq!(standalone.pending_and_dead().await?, (1, 1));
    standalone.succeed(&["dead-letter", "retry", "--all", "--queue", "scoring"]);
    assert_eq!(standalone.pending_and_dead().await?, (1, 1));
    standalone.succeed(&["dead-letter", "retry", "--all"]);
    assert_eq!(standalone.pending_and_dead().await?, (2, 0));
    Ok(())
}

#[tokio::test]
async fn outbox_status_counts_pending_and_dead_events() -> Result<()> {
    let standalone = Standalone::with_dead_events(2).await?;
    standalone.succeed(&["dead-letter", "retry", &standalone.ids[0]]);
    let status = standalone.succeed(&["outbox", "status"]);
    let rows: Vec<Vec<&str>> = status.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["SERVICE", "PENDING", "OLDEST", "DEAD", "LAST", "ERROR"]);
    assert_eq!(rows[1], ["registry", "0", "-", "0", "-"]);
    assert_eq!((rows[2][0], rows[2][1], rows[2][3], rows[2][4]), ("ingest", "1", "s", "1"), "{status}");
    assert_eq!((rows[3][0], rows[4][0]), ("scoring", "export"));
    Ok(())
}

/// A namespace of RabbitMQ with dead letters.
struct Broker {
    bus: Bus,
    namespace: String,
    event_ids: Vec<String>,
}

impl Broker {
    /// Two dead letters: a rejected event and a foreign message.
    async fn with_dead_letters() -> Result<Self> {
        let event = accepted(new_id())?;
        let broker = Self::of_events(std::slice::from_ref(&event))?;
        let consumer = consume(&broker.bus, Arc::new(Recorder::answering(rejection())));
        let event = std::slice::from_ref(&event);
        eventually("a queue", || async { Ok(broker.bus.publish(event).await == [Ok(())]) }).await?;
        let (_connection, channel) = broker.channel().await?;
        let queue = broker.queue_name();
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        channel.basic_publish("".into(), queue, options, FOREIGN_MESSAGE.as_bytes(), properties).await?;
        let both_are_dead = || async { Ok(broker.list().contains(": 2 dead letters\n")) };
        eventually("the dead letters", both_are_dead).await?;
        drop(consumer);
        Ok(broker)
    }

    /// Dead events of one message that reached its delivery limit. The subscription's queue allows a hundred redeliveries,
    /// which take long: the message is moved to a queue that allows one.
    async fn with_dead_batch(events: usize) -> Result<Self> {
        let events: Vec<OutgoingEvent> = (0..events).map(|_| accepted(new_id())).collect::<Result<_>>()?;
        let broker = Self::of_events(&events)?;
        let consumer = consume(&broker.bus, Arc::new(NeverEnding));
        let are_published = || async { Ok(broker.bus.publish(&events).await.iter().all(Result::is_ok)) };
        eventually("a queue", are_published).await?;
        drop(consumer);
        // The first request of a connection may hang in the client: each attempt opens a new connection.
        let (_connection, channel, limited) = loop {
            if let Ok(opened) = timeout(ATTEMPT, broker.open_limited_queue()).await {
                break opened?;
            }
        };
        let queue = broker.queue_name();
        let batch = next_message(&channel, &queue).await?;
        let options = BasicPublishOptions::default();
        channel
            .basic_publish("".into(), limited.clone(), options, &batch.data, batch.properties.clone())
            .await?;
        batch.acker.ack(BasicAckOptions::default()).await?;
        let requeue = BasicNackOptions { requeue: true, ..BasicNackOptions::default() };
        for _ in 0..2 {
            next_message(&channel, &limited).await?.acker.nack(requeue).await?;
        }
        let are_dead =
            || async { Ok(broker.list().contains("scoring-worker.conversation-accepted: 3 dead letters\n")) };
        eventually("the dead letters", are_dead).await?;
        Ok(broker)
    }

    /// Declares a queue that dead-letters like that of the subscription, but after one redelivery.
    async fn open_limited_queue(&self) -> Result<(Connection, Channel, ShortString)> {
        let (connection, channel) = self.channel().await?;
        let dead_letters = format!("{}.{}.dead", self.namespace, ACCEPTED.queue);
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
        arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(1));
        arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
        arguments.insert("x-dead-letter-routing-key".into(), AMQPValue::LongString(dead_letters.into()));
        let name = ShortString::from(format!("{}.limited", self.namespace));
        channel.queue_declare(name.clone(), QueueDeclareOptions::durable(), arguments).await?;
        Ok((connection, channel, name))
    }

    fn of_events(events: &[OutgoingEvent]) -> Result<Self> {
        let url = assay_testkit::services::rabbit()?;
        let namespace = assay_testkit::random_name("operator")?;
        let bus = Bus::open(&BusSettings { namespace: namespace.clone(), ..BusSettings::new(url) })?;
        let event_ids = events.iter().map(|event| event.id().to_string()).collect();
        Ok(Self { bus, namespace, event_ids })
    }

    /// A channel for direct access to the queue.
    async fn channel(&self) -> Result<(Connection, Channel)> {
        let url = assay_testkit::services::rabbit()?;
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        Ok((connection, channel))
    }

    /// The queue of the subscription.
    fn queue_name(&self) -> ShortString {
        format!("{}.{}", self.namespace, ACCEPTED.queue).into()
    }

    /// Runs a command that must succeed. Returns its standard output.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.assay(arguments);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    fn assay(&self, arguments: &[&str]) -> Output {
        let url = assay_testkit::services::rabbit().unwrap();
        let variables = [("ASSAY_BUS__URL", url), ("ASSAY_BUS__NAMESPACE", &self.namespace)];
        command().args(arguments).envs(variables).output().unwrap()
    }

    fn list(&self) -> String {
        self.succeed(&["dead-letter", "list"])
    }

    /// The id listed for the foreign message, which has none.
    fn id_of_foreign_message(&self) -> Result<String> {
        let list = self.list();
        let id = list.split_whitespace().find(|word| word.starts_with("sha256-"));
        Ok(id.context("a message without an id")?.to_owned())
    }
}

/// The data folder of a standalone whose consumer rejected events of ingest.
struct Standalone {
    folder: TempDir,
    outbox: Outbox,
    ids: Vec<String>,
    organization_id: String,
}

impl Standalone {
    async fn with_dead_events(count: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        File::create(folder.path().join("lock"))?;
        for (schema, migrations) in [
            (assay_agent_registry::SCHEMA, assay_agent_registry::MIGRATIONS),
            (assay_scoring_worker::SCHEMA, assay_scoring_worker::MIGRATIONS),
            (assay_export::SCHEMA, assay_export::MIGRATIONS),
        ] {
            migrated(folder.path(), schema, migrations).await?;
        }
        let database = migrated(folder.path(), assay_ingest::SCHEMA, assay_ingest::MIGRATIONS).await?;
        let organization_id = new_id();
        let events: Vec<OutgoingEvent> =
            (0..count).map(|_| accepted(organization_id)).collect::<Result<_>>()?;
        let ids = events.iter().map(|event| event.id().to_string()).collect();
        let Database::Sqlite(sqlite) = &database else { panic!("this is SQLite") };
        sqlite.write(move |connection| outbox::enqueue(connection, &events, FastPathClaim::NONE)).await?;

        let bus = Bus::open(&BusSettings::new("local:"))?;
        let outbox = Outbox::new(database);
        let _consumer = consume(&bus, Arc::new(Recorder::answering(rejection())));
        let mut tasks = JoinSet::new();
        tasks.spawn(relay(outbox.clone(), bus, CancellationToken::new()));
        let all_are_dead = || async { Ok(outbox.status().await?.dead == count as u64) };
        eventually("the dead events", all_are_dead).await?;
        tasks.shutdown().await;
        Ok(Self { folder, outbox, ids, organization_id: organization_id.to_string() })
    }

    /// Runs a command that must succeed. Returns its standard output.
    fn succeed(&self, arguments: &[&str]) -> String {
        let output = command().args(arguments).arg("--data-dir").arg(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    }

    async fn pending_and_dead(&self) -> Result<(u64, u64)> {
        let status = self.outbox.status().await?;
        Ok((status.pending, status.dead))
    }
}

async fn migrated(
    folder: &Path,
    schema: &'static str,
    migrations: &'static [Migrations],
) -> Result<Database> {
    let database_url = format!("sqlite:{}", folder.join(format!("{schema}.sqlite")).display()).into();
    let database = Database::open(&DatabaseSettings { database_url, database_pool_size: 2 }, schema)?;
    database.migrate(migrations).await?;
    Ok(database)
}

/// The next message of a queue, once there is one.
async fn next_message(channel: &Channel, queue: &ShortString) -> Result<BasicGetMessage> {
    let deadline = Instant::now() + DEADLINE;
    loop {
        ensure!(Instant::now() < deadline, "no message in {queue}");
        if let Some(message) = channel.basic_get(queue.clone(), BasicGetOptions::default()).await? {
            return Ok(message);
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Starts a consumer, which stops when the returned value is dropped.
fn consume(bus: &Bus, handler: Arc<dyn Handler>) -> JoinSet<()> {
    let bus = bus.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { bus.consume(ACCEPTED, handler, CancellationToken::new()).await });
    tasks
}

fn accepted(organization_id: OrganizationId) -> Result<OutgoingEvent> {
    let event = ConversationAccepted { organization_id, ticket_id: new_id(), accepted_at: now() };
    Ok(OutgoingEvent::new(new_id(), now(), &event)?)
}

fn rejection() -> Outcome {
    Outcome::Reject { reason: "unknown kind of author".to_owned() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Records deliveries and returns the same outcome for each.
struct Recorder {
    answer: Outcome,
    ids: Mutex<Vec<String>>,
}

impl Recorder {
    fn answering(answer: Outcome) -> Self {
        Self { answer, ids: Mutex::default() }
    }

    fn ids(&self) -> Vec<String> {
        self.ids.lock().unwrap().clone()
    }
}

#[async_trait]
impl Handler for Recorder {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        self.ids.lock().unwrap().extend(deliveries.iter().map(|delivery| delivery.id.to_string()));
        vec![self.answer.clone(); deliveries.len()]
    }
}

/// Never completes.
struct NeverEnding;

#[async_trait]
impl Handler for NeverEnding {
    async fn handle(&self, _: &[Delivery]) -> Vec<Outcome> {
        std::future::pending().await
    }
}

/// The executable, without the variables of the test servers, which it would refuse as unknown settings.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.env_remove("ASSAY_TEST_POSTGRES_URL").env_remove("ASSAY_TEST_AMQP_URL");
    command
}
