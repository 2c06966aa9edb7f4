//! End to end: the sustained rate of imports that are accepted, evaluated and in the read model. A
//! conversation that is accepted and not yet in the read model is *waiting*; the number of these is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tokio::sync::Semaphore;

use super::accepting::{Accepting, CONNECTIONS, imports_to};
use super::{Bench, Pace};
use crate::client::{Load, Outcome};
use crate::cluster::{Cluster, ReadModel};
use crate::cpu::listed;
use crate::report::{Goal, Report};

/// Upper limit of waiting conversations.
const MAX_WAITING: usize = 2_000;
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Polls for each query of the age of the oldest waiting conversation, which costs more.
const POLLS_PER_AGE_QUERY: u32 = 10;
const SETTLE_LIMIT: Duration = Duration::from_secs(60);

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("evaluated");
    let accepting = Accepting::start(servers, conversations, "accepted").await?;
    let cluster = Cluster::distributed(servers, "evaluated").await?;
    cluster.register_agents(&conversations.agents).await?;
    let load = imports_to(&cluster, conversations, "evaluated", CONNECTIONS);
    // Its figures are dropped.
    let _warm_up = round(&cluster, &load, pace.time / 2).await?;
    let mut rounds = Vec::new();
    for number in 0..pace.rounds {
        let accepted = accepting.maximum(pace.time).await?;
        let outcome = round(&cluster, &load, pace.sustained).await?;
        report.note(format!(
            "evaluated, round {number}: {:.0}/s of {:.0}/s at most; waiting at the start {}, at the end {}; maximum age of \
             the oldest waiting {:.1} s; {} deliveries were retried so far; CPU µs per conversation: {}",
            outcome.evaluated_per_second, accepted.per_second(202), outcome.waiting_at_start,
            outcome.waiting_at_end, outcome.max_age, cluster.retried_deliveries()?, outcome.cpu_micros
        ));
        rounds.push((accepted, outcome));
    }
    add(report, &rounds, pace);
    Ok(())
}

fn add(report: &mut Report, rounds: &[(Outcome, Round)], pace: Pace) {
    let of_baseline =
        |value: fn(&Outcome) -> f64| rounds.iter().map(|(accepted, _)| value(accepted)).collect::<Vec<_>>();
    let ours = |value: fn(&Round) -> f64| rounds.iter().map(|(_, round)| value(round)).collect::<Vec<_>>();
    let what = format!(
        "imports evaluated and in the read model, for {} s, {MAX_WAITING} waiting at most",
        pace.sustained.as_secs()
    );
    let baseline = "imports accepted while nothing is evaluated";
    let evaluated_rates = ours(|round| round.evaluated_per_second);
    let accepted_rates = of_baseline(|accepted| accepted.per_second(202));
    report.compare(what, "/s", &evaluated_rates, (baseline, &accepted_rates), Goal::Ratio(0.5));
    let scorer_micros = ours(|round| 1e6 * round.scorer_seconds_each);
    report.add("CPU time of the scorer's threads for a conversation", "µs", &scorer_micros, Goal::None);
    let baseline_p50 = of_baseline(|accepted| accepted.percentile_ms(0.5));
    let what = "p50 of an import meanwhile";
    report.compare(what, "ms", &ours(|round| round.p50), (baseline, &baseline_p50), Goal::None);
    let baseline_p99 = of_baseline(|accepted| accepted.percentile_ms(0.99));
    let what = "p99 of an import meanwhile";
    report.compare(what, "ms", &ours(|round| round.p99), (baseline, &baseline_p99), Goal::None);
    // Not measured: the maximum number of waiting conversations divided by the rate (Little's law).
    let expected_age: Vec<f64> = evaluated_rates.iter().map(|rate| MAX_WAITING as f64 / rate).collect();
    let expected = ("time to evaluate the maximum number waiting", &expected_age[..]);
    let what = "maximum age of the oldest waiting meanwhile";
    report.compare(what, "s", &ours(|round| round.max_age), expected, Goal::None);
    let what = "age of the oldest waiting at the end";
    report.compare(what, "s", &ours(|round| round.age_at_end), expected, Goal::None);
}

/// The figures of one round: percentiles of imports in milliseconds, ages in seconds.
struct Round {
    /// Conversations that arrived in the read model, per second.
    evaluated_per_second: f64,
    /// CPU time of the scorer's threads for a conversation.
    scorer_seconds_each: f64,
    p50: f64,
    p99: f64,
    waiting_at_start: u64,
    waiting_at_end: u64,
    /// Maximum age of the oldest waiting conversation, and its age at the end.
    max_age: f64,
    age_at_end: f64,
    /// CPU time for a conversation in each process, in microseconds, as text.
    cpu_micros: String,
}

/// Applies load for this time, then waits until everything accepted is in the read model.
async fn round(cluster: &Cluster, load: &Load, time: Duration) -> Result<Round> {
    let permits = Arc::new(Semaphore::new(MAX_WAITING));
    let mut watch = Watch::start(cluster, Arc::clone(&permits))?;
    // Until the maximum number is waiting.
    let filling = load.closed_loop_with_permits(Arc::clone(&permits), time / 4).await?.only(202)?;
    let (usage_before, scorer_before) = (cluster.usage()?, cluster.scorer_seconds()?);
    let (begin, in_read_model_at_start) = (Instant::now(), watch.read_model.count()?);
    let accepted_at_start = watch.accepted_before + filling.count();
    let outcome = load.closed_loop_with_permits(permits, time).await?.only(202)?;
    let (usage_after, scorer_after) = (cluster.usage()?, cluster.scorer_seconds()?);
    let (seconds, in_read_model_at_end) = (begin.elapsed().as_secs_f64(), watch.read_model.count()?);
    let accepted_at_end = accepted_at_start + outcome.count();
    let ages = watch.stop()?;
    watch.read_model.settle(accepted_at_end, SETTLE_LIMIT)?;
    let evaluated_count = in_read_model_at_end - in_read_model_at_start;
    Ok(Round {
        evaluated_per_second: evaluated_count as f64 / seconds,
        scorer_seconds_each: (scorer_after - scorer_before) / evaluated_count as f64,
        p50: outcome.percentile_ms(0.5),
        p99: outcome.percentile_ms(0.99),
        waiting_at_start: accepted_at_start - in_read_model_at_start,
        waiting_at_end: accepted_at_end - in_read_model_at_end,
        max_age: ages.max_age.as_secs_f64(),
        age_at_end: ages.age_at_end.as_secs_f64(),
        cpu_micros: listed(&usage_after.micros_each(&usage_before, evaluated_count)),
    })
}

/// Returns permits as conversations arrive in the read model.
struct Watch {
    read_model: ReadModel,
    accepted_before: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Ages>>>,
}

/// Ages of the oldest waiting conversation: the maximum seen, and the one at the end.
#[derive(Clone, Copy, Default)]
struct Ages {
    max_age: Duration,
    age_at_end: Duration,
}

impl Watch {
    /// Requires that nothing is waiting.
    fn start(cluster: &Cluster, permits: Arc<Semaphore>) -> Result<Self> {
        let (mut read_model, mut watching) = (ReadModel::of(cluster)?, ReadModel::of(cluster)?);
        let accepted_before = read_model.count()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut ages, mut count, mut polls) = (Ages::default(), accepted_before, 0);
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(POLL_INTERVAL);
                let new_count = watching.count()?;
                permits.add_permits(usize::try_from(new_count - count)?);
                count = new_count;
                polls += 1;
                if polls % POLLS_PER_AGE_QUERY == 0 {
                    ages.max_age = ages.max_age.max(watching.oldest_waiting()?);
                }
            }
            ages.age_at_end = watching.oldest_waiting()?;
            ages.max_age = ages.max_age.max(ages.age_at_end);
            Ok(ages)
        });
        Ok(Self { read_model, accepted_before, stop, thread: Some(thread) })
    }

    fn stop(&mut self) -> Result<Ages> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().ok_or_else(|| anyhow!("it was stopped before"))?;
        thread.join().map_err(|_| anyhow!("the watcher of the read model panicked"))?
    }
}

/// Stops the thread when a round fails, too.
impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}
