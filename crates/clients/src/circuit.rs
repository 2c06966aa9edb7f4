//! Circuit breaker of one service, so that callers do not wait for a service that is down.
//!
//! A circuit is **closed** (calls pass) or **open** (calls fail at once, without network traffic).
//!
//! - A call that cannot connect, whose connection breaks, or that has no response within a second is reported as a
//!   failure. That only starts a probe of the service's liveness (`/healthz`, which touches no dependency), one probe
//!   at a time per process.
//! - The circuit **opens** when two consecutive probes have no response within a second each, half a second apart, and no
//!   other response arrived in between. So slow calls never open the circuit of a service that still responds to some,
//!   even of one too busy for probes. A response of any status, 503 included, shows that the service is alive.
//! - The circuit **closes** at the first response: to a probe, to a readiness check, or to a call in flight. While it is open
//!   the service is probed every half second, with or without traffic; no client call is spent on probing.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use assay_platform::runtime::timeout;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::metrics;

/// A call without a response after this time is reported as a failure.
pub(crate) const REPORT_SLOW_CALL_AFTER: Duration = Duration::from_secs(1);
const PROBE_DEADLINE: Duration = Duration::from_secs(1);
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Consecutive failed probes that open the circuit.
const PROBES_TO_OPEN: u32 = 2;

/// The circuit of one service. Clones share state.
#[derive(Clone, Default)]
pub(crate) struct Circuit {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_open: AtomicBool,
    /// Number of responses of any kind.
    responses: AtomicU64,
    failure_reported: Notify,
}

impl Circuit {
    /// Whether calls fail at once.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::Relaxed)
    }

    /// Reports a failed or slow call, which starts probing.
    pub(crate) fn report_failure(&self) {
        self.shared.failure_reported.notify_one();
    }

    /// Reports a response of any kind, which closes the circuit.
    pub(crate) fn report_response(&self, service: &'static str) {
        self.shared.responses.fetch_add(1, Ordering::Relaxed);
        if self.shared.is_open.swap(false, Ordering::Relaxed) {
            metrics::record_circuit_open(service, false);
            tracing::info!(service, "circuit closed: the service responds again");
        }
    }

    /// Probes the service after failed calls until `stop`. `probe` returns whether one probe had a response.
    pub(crate) async fn watch<P, F>(&self, service: &'static str, mut probe: P, stop: &CancellationToken)
    where
        P: FnMut() -> F,
        F: Future<Output = bool>,
    {
        while stop.run_until_cancelled(self.shared.failure_reported.notified()).await.is_some() {
            if stop.run_until_cancelled(self.probe_until_alive(service, &mut probe)).await.is_none() {
                return;
            }
        }
    }

    async fn probe_until_alive<P, F>(&self, service: &'static str, probe: &mut P)
    where
        P: FnMut() -> F,
        F: Future<Output = bool>,
    {
        let mut failed_probes = 0_u32;
        let mut responses_before = self.shared.responses.load(Ordering::Relaxed);
        while timeout(PROBE_DEADLINE, probe()).await != Some(true) {
            let responses = self.shared.responses.load(Ordering::Relaxed);
            failed_probes = if responses == responses_before { failed_probes.saturating_add(1) } else { 0 };
            responses_before = responses;
            if failed_probes >= PROBES_TO_OPEN && !self.shared.is_open.swap(true, Ordering::Relaxed) {
                metrics::record_circuit_open(service, true);
                tracing::warn!(
                    service,
                    "circuit opened: the service does not respond to probes, calls fail at once"
                );
            }
            sleep(PROBE_INTERVAL).await;
        }
        self.report_response(service);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use tokio::time::{Instant, advance};

    use super::*;

    /// Reaction of the service to a probe.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Behavior {
        Alive,
        Refusing,
        Silent,
    }

    #[derive(Clone)]
    struct FakeService {
        circuit: Circuit,
        behavior: Arc<Mutex<Behavior>>,
        probes: Arc<AtomicUsize>,
        probing: Arc<tokio::sync::Mutex<()>>,
    }

    impl FakeService {
        fn new(behavior: Behavior) -> Self {
            let (circuit, behavior) = (Circuit::default(), Arc::new(Mutex::new(behavior)));
            Self { circuit, behavior, probes: Arc::default(), probing: Arc::default() }
        }

        fn set(&self, behavior: Behavior) {
            *self.behavior.lock().unwrap() = behavior;
        }

        async fn watch(self) {
            let probe = || async {
                self.probes.fetch_add(1, Ordering::SeqCst);
                let _probe = self.probing.try_lock().expect("one probe at a time");
                let behavior = *self.behavior.lock().unwrap();
                if behavior == Behavior::Silent {
                    sleep(PROBE_DEADLINE * 2).await;
                }
                behavior == Behavior::Alive
            };
            self.circuit.watch("test", probe, &CancellationToken::new()).await;
        }
    }

    /// Runs `scenario` concurrently with the watch task of a service.
    async fn with_watch(behavior: Behavior, scenario: impl AsyncFnOnce(&FakeService)) {
        let service = FakeService::new(behavior);
        tokio::select! {
            () = service.clone().watch() => panic!("the watch ended"),
            () = scenario(&service) => {}
        }
    }

    async fn pass(time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            // Small steps, so that waiting tasks run.
            advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_calls_never_open_the_circuit_of_a_live_service() {
        with_watch(Behavior::Alive, async |service| {
            for _ in 0..1_000 {
                service.circuit.report_failure();
                pass(Duration::from_millis(10)).await;
                assert!(!service.circuit.is_open());
            }
            assert!(service.probes.load(Ordering::SeqCst) > 0);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_failed_probe_does_not_open_the_circuit() {
        with_watch(Behavior::Refusing, async |service| {
            service.circuit.report_failure();
            pass(PROBE_INTERVAL / 2).await;
            assert!(!service.circuit.is_open());
            service.set(Behavior::Alive);
            pass(PROBE_INTERVAL * 4).await;
            assert!(!service.circuit.is_open());
            assert_eq!(service.probes.load(Ordering::SeqCst), 2);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn refused_probes_open_the_circuit_and_a_probe_closes_it() {
        with_watch(Behavior::Refusing, async |service| {
            service.circuit.report_failure();
            pass(PROBE_INTERVAL + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
            pass(Duration::from_secs(60)).await;
            assert!(service.circuit.is_open());
            service.set(Behavior::Alive);
            pass(PROBE_INTERVAL + Duration::from_millis(50)).await;
            assert!(!service.circuit.is_open());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn any_response_closes_the_circuit_and_silence_reopens_it() {
        with_watch(Behavior::Refusing, async |service| {
            service.circuit.report_failure();
            pass(PROBE_INTERVAL + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
            service.circuit.report_response("test");
            assert!(!service.circuit.is_open());
            pass(PROBE_INTERVAL * 3 + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn responses_to_calls_keep_the_circuit_closed() {
        with_watch(Behavior::Silent, async |service| {
            service.circuit.report_failure();
            for _ in 0..60 {
                pass(PROBE_INTERVAL).await;
                service.circuit.report_response("test");
                assert!(!service.circuit.is_open());
            }
            assert!(service.probes.load(Ordering::SeqCst) > 10);
            // Then no response at all.
            pass((PROBE_DEADLINE + PROBE_INTERVAL) * 4).await;
            assert!(service.circuit.is_open());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn silent_service_opens_the_circuit_within_three_seconds() {
        with_watch(Behavior::Silent, async |service| {
            service.circuit.report_failure();
            pass(PROBE_DEADLINE + PROBE_INTERVAL).await;
            assert!(!service.circuit.is_open());
            pass(PROBE_DEADLINE + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
        })
        .await;
    }
}
