//! Cost of an event on RabbitMQ: events per second, and CPU time per event of the broker and of this process, for
//! publishing and consuming, by number of events per message.
//!
//! `cargo bench -p assay-messaging --bench rabbit -- 1 8 64`: the arguments are the numbers of events per message.

use std::collections::HashMap;
use std::fs;
use std::io::{Write as _, stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use assay_contracts::agent::AgentFacts;
use assay_contracts::event::{AgentCreated, Event as _};
use assay_messaging::{Bus, BusSettings, Delivery, Handler, Outcome, OutgoingEvent, Subscription};
use assay_platform::runtime::{new_id, now};
use assay_testkit::{PrivateRabbit, RabbitOptions};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Events per measurement.
const EVENTS: usize = 40_960;
/// Events per call of `publish`, as in the relay of an outbox.
const EVENTS_PER_CALL: usize = 256;
/// As in the relay.
const CONCURRENT_CALLS: usize = 4;
/// About the size of a `conversation.evaluated.v1` event.
const EVENT_BYTES: usize = 2_000;
/// With the limits of the export role.
const QUEUE: Subscription = Subscription {
    queue: "bench.events",
    topics: &[AgentCreated::TOPIC],
    max_batch: 128,
    max_in_flight: 512,
};
const DEADLINE: Duration = Duration::from_secs(120);

fn main() -> Result<()> {
    // Numbers of events per message. Cargo passes `--bench`, too.
    let sizes: Vec<u16> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![1, 8, 64] } else { sizes };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let broker = PrivateRabbit::start(&RabbitOptions::for_tests())?;
    let mut output = stdout();
    writeln!(output, "{EVENTS} events of {EVENT_BYTES} bytes; processor µs for each event")?;
    writeln!(output, "events/message  step      events/s  broker µs  process µs")?;
    for size in sizes {
        for (step, measured) in runtime.block_on(measure(&broker, size))? {
            let Measured { per_second, broker, process } = measured;
            writeln!(output, "{size:>14}  {step:<8} {per_second:>9.0}  {broker:>9.1}  {process:>10.1}")?;
        }
    }
    Ok(())
}

async fn measure(broker: &PrivateRabbit, events_per_message: u16) -> Result<[(&'static str, Measured); 2]> {
    let namespace = format!("bench-{events_per_message}");
    let settings = BusSettings { namespace, events_per_message, ..BusSettings::new(broker.amqp_url()) };
    let bus = Bus::open(&settings)?;
    // Creates the queue.
    consume(&bus, 0).await?;
    let events: Vec<OutgoingEvent> = (0..EVENTS).map(|_| event()).collect::<Result<_>>()?;

    let before = Moment::now(broker)?;
    let batches: Vec<&[OutgoingEvent]> = events.chunks(EVENTS_PER_CALL).collect();
    let publishers = batches.chunks(batches.len().div_ceil(CONCURRENT_CALLS));
    try_join_all(publishers.map(|batches| publish(&bus, batches))).await?;
    let published = before.until_now(broker)?;

    let before = Moment::now(broker)?;
    consume(&bus, EVENTS).await?;
    let consumed = before.until_now(broker)?;
    Ok([("publish", published), ("consume", consumed)])
}

/// Publishes batches one after the other.
async fn publish(bus: &Bus, batches: &[&[OutgoingEvent]]) -> Result<()> {
    for batch in batches {
        bus.publish(batch).await.into_iter().collect::<Result<(), _>>()?;
    }
    Ok(())
}

/// Consumes `events` events; with 0 only until the consumer is connected.
async fn consume(bus: &Bus, events: usize) -> Result<()> {
    let (handler, stop) = (Arc::new(Counting::default()), CancellationToken::new());
    let consuming = bus.consume(QUEUE, handler.clone(), stop.clone());
    let waiting = async {
        while handler.seen.load(Ordering::SeqCst) < events {
            tokio::time::timeout(DEADLINE, handler.more.notified()).await.context("events are missing")?;
        }
        while bus.ping().await.is_err() {
            sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
        anyhow::Ok(())
    };
    let ((), waited) = tokio::join!(consuming, waiting);
    waited?;
    ensure!(handler.seen.load(Ordering::SeqCst) == events, "events were delivered twice");
    Ok(())
}

fn event() -> Result<OutgoingEvent> {
    let agent =
        AgentFacts { id: new_id(), external_id: "fin".to_owned(), name: "x".repeat(EVENT_BYTES - 500) };
    let event = AgentCreated { organization_id: new_id(), agent, created_at: now() };
    Ok(OutgoingEvent::new(new_id(), now(), &event)?)
}

#[derive(Default)]
struct Counting {
    seen: AtomicUsize,
    more: Notify,
}

#[async_trait]
impl Handler for Counting {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        self.seen.fetch_add(deliveries.len(), Ordering::SeqCst);
        self.more.notify_one();
        vec![Outcome::Done; deliveries.len()]
    }
}

/// Events per second, and CPU time for each event in microseconds.
struct Measured {
    per_second: f64,
    broker: f64,
    process: f64,
}

/// A point in time, and the CPU time used by the processes, in ticks of a hundredth of a second.
struct Moment {
    at: Instant,
    broker: u64,
    process: u64,
}

impl Moment {
    fn now(broker: &PrivateRabbit) -> Result<Self> {
        let ticks = ticks_by_process()?;
        // Whether a process is the broker or one of its descendants.
        let is_broker = |pid: u32| {
            let mut ancestor = Some(pid);
            while let Some(pid) = ancestor.filter(|pid| *pid != broker.pid()) {
                ancestor = ticks.get(&pid).map(|(parent, _)| *parent);
            }
            ancestor.is_some()
        };
        let of_broker = ticks.iter().filter(|(pid, _)| is_broker(**pid)).map(|(_, (_, ticks))| ticks).sum();
        let (_, process) = ticks.get(&std::process::id()).context("this process is not in /proc")?;
        Ok(Self { at: Instant::now(), broker: of_broker, process: *process })
    }

    fn until_now(&self, broker: &PrivateRabbit) -> Result<Measured> {
        let now = Self::now(broker)?;
        let events = EVENTS as f64;
        // A tick is 10,000 µs.
        let each = |before: u64, after: u64| (after - before) as f64 * 10_000.0 / events;
        Ok(Measured {
            per_second: events / (now.at - self.at).as_secs_f64(),
            broker: each(self.broker, now.broker),
            process: each(self.process, now.process),
        })
    }
}

/// The parent and the CPU ticks of each process, by process id.
fn ticks_by_process() -> Result<HashMap<u32, (u32, u64)>> {
    let mut processes = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended meanwhile.
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        // The name in parentheses may hold anything.
        let Some((_, fields)) = text.rsplit_once(')') else { continue };
        let fields: Vec<u64> =
            fields.split_whitespace().map(|field| field.parse().unwrap_or_default()).collect();
        // After the name: the parent at 1, user and system time at 11 and 12 (proc(5)).
        let (Some(parent), Some(times)) = (fields.get(1), fields.get(11..13)) else { continue };
        processes.insert(pid, (u32::try_from(*parent)?, times.iter().sum()));
    }
    Ok(processes)
}
