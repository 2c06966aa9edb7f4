//! Whether a service is alive, so that nobody waits for one that is dead.
//!
//! A circuit is **closed** (calls pass) or **open** (calls fail at once, without touching the network).
//!
//! - A call that cannot connect, whose connection breaks, or that has had no answer for a second only raises a
//!   *suspicion*. Then the service is asked for its liveness (`/healthz`, which touches nothing), by one question at a time
//!   for the whole process.
//! - It **opens** when two questions in a row have no answer within a second each, half a second apart, and nothing else
//!   was answered meanwhile. So a slow call, or any number of them, never opens the circuit of a service that is alive, not
//!   even of one that is too busy to say so; nor does an answer of any status, 503 included: what a live service says is
//!   passed on.
//! - It **closes** at the first answer: to this question, to the one for readiness, or to a call that was still under way.
//!   While it is open the service is asked every half second, whether anybody calls or not; no call of a client is spent
//!   on finding out.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use assay_platform::runtime::within;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::metrics;

/// A call without an answer for so long raises a suspicion.
pub(crate) const SUSPICIOUS_AFTER: Duration = Duration::from_secs(1);
/// How long the service may take to say that it is alive.
const PROBE_DEADLINE: Duration = Duration::from_secs(1);
/// Between two questions.
const PROBE_PAUSE: Duration = Duration::from_millis(500);
/// Questions without an answer that open the circuit.
const PROBES_TO_OPEN: u32 = 2;

/// The circuit of one service. Cloned freely; all clones are one.
#[derive(Clone, Default)]
pub(crate) struct Circuit {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_open: AtomicBool,
    /// Signs of life, of whatever kind.
    answers: AtomicU64,
    suspicion: Notify,
}

impl Circuit {
    /// Whether calls fail at once.
    pub(crate) fn is_open(&self) -> bool {
        self.shared.is_open.load(Ordering::Relaxed)
    }

    /// A call had no answer: has the service asked whether it is alive.
    pub(crate) fn suspect(&self) {
        self.shared.suspicion.notify_one();
    }

    /// The service has answered a question of whatever kind: it is alive.
    pub(crate) fn answered(&self, service: &'static str) {
        self.shared.answers.fetch_add(1, Ordering::Relaxed);
        if self.shared.is_open.swap(false, Ordering::Relaxed) {
            metrics::circuit(service, false);
            tracing::info!(service, "the service is alive again");
        }
    }

    /// Follows up suspicions until `stop`. `is_alive` asks the service once; an error or no answer in time means no.
    pub(crate) async fn watch<P, F>(&self, service: &'static str, mut is_alive: P, stop: &CancellationToken)
    where
        P: FnMut() -> F,
        F: Future<Output = bool>,
    {
        while stop.run_until_cancelled(self.shared.suspicion.notified()).await.is_some() {
            if stop.run_until_cancelled(self.follow_up(service, &mut is_alive)).await.is_none() {
                return;
            }
        }
    }

    /// Asks until there is an answer.
    async fn follow_up<P, F>(&self, service: &'static str, is_alive: &mut P)
    where
        P: FnMut() -> F,
        F: Future<Output = bool>,
    {
        let mut unanswered = 0_u32;
        let mut answers = self.shared.answers.load(Ordering::Relaxed);
        while within(PROBE_DEADLINE, is_alive()).await != Some(true) {
            let answers_before = std::mem::replace(&mut answers, self.shared.answers.load(Ordering::Relaxed));
            unanswered = if answers == answers_before { unanswered.saturating_add(1) } else { 0 };
            if unanswered >= PROBES_TO_OPEN && !self.shared.is_open.swap(true, Ordering::Relaxed) {
                metrics::circuit(service, true);
                tracing::warn!(service, "the service does not say that it is alive: calls fail at once");
            }
            sleep(PROBE_PAUSE).await;
        }
        self.answered(service);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use tokio::time::{Instant, advance};

    use super::*;

    /// What the service does when it is asked.
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Mood {
        Alive,
        Refusing,
        Silent,
    }

    #[derive(Clone)]
    struct Scripted {
        circuit: Circuit,
        mood: Arc<Mutex<Mood>>,
        asked: Arc<AtomicUsize>,
        asking: Arc<tokio::sync::Mutex<()>>,
    }

    impl Scripted {
        fn new(mood: Mood) -> Self {
            let (circuit, mood) = (Circuit::default(), Arc::new(Mutex::new(mood)));
            Self { circuit, mood, asked: Arc::default(), asking: Arc::default() }
        }

        fn turn(&self, mood: Mood) {
            *self.mood.lock().unwrap() = mood;
        }

        async fn watch(self) {
            let is_alive = || async {
                self.asked.fetch_add(1, Ordering::SeqCst);
                let _only = self.asking.try_lock().expect("one question at a time");
                let mood = *self.mood.lock().unwrap();
                if mood == Mood::Silent {
                    sleep(PROBE_DEADLINE * 2).await;
                }
                mood == Mood::Alive
            };
            self.circuit.watch("test", is_alive, &CancellationToken::new()).await;
        }
    }

    /// Runs `story` beside the watch, on a clock of its own.
    async fn beside<F: Future<Output = ()>>(service: &Scripted, story: F) {
        let watch = service.clone().watch();
        tokio::select! {
            () = watch => panic!("the watch ended"),
            () = story => {}
        }
    }

    async fn pass(time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            // In small steps, so that whoever waits gets his turn.
            advance(Duration::from_millis(10)).await;
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_calls_never_open_the_circuit_of_a_service_that_is_alive() {
        let service = Scripted::new(Mood::Alive);
        beside(&service, async {
            for _ in 0..1_000 {
                service.circuit.suspect();
                pass(Duration::from_millis(10)).await;
                assert!(!service.circuit.is_open());
            }
            assert!(service.asked.load(Ordering::SeqCst) > 0);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn one_question_without_an_answer_does_not_open_it() {
        let service = Scripted::new(Mood::Refusing);
        beside(&service, async {
            service.circuit.suspect();
            pass(PROBE_PAUSE / 2).await;
            assert!(!service.circuit.is_open());
            service.turn(Mood::Alive);
            pass(PROBE_PAUSE * 4).await;
            assert!(!service.circuit.is_open());
            assert_eq!(service.asked.load(Ordering::SeqCst), 2);
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_refuses_is_found_dead_within_a_second_and_found_alive_without_a_call() {
        let service = Scripted::new(Mood::Refusing);
        beside(&service, async {
            service.circuit.suspect();
            pass(PROBE_PAUSE + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
            pass(Duration::from_secs(60)).await;
            assert!(service.circuit.is_open());
            service.turn(Mood::Alive);
            pass(PROBE_PAUSE + Duration::from_millis(50)).await;
            assert!(!service.circuit.is_open());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_to_another_question_closes_it_and_silence_opens_it_again() {
        let service = Scripted::new(Mood::Refusing);
        beside(&service, async {
            service.circuit.suspect();
            pass(PROBE_PAUSE + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
            service.circuit.answered("test");
            assert!(!service.circuit.is_open());
            pass(PROBE_PAUSE * 3 + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_answers_calls_and_is_too_busy_to_say_that_it_is_alive_is_alive() {
        let service = Scripted::new(Mood::Silent);
        beside(&service, async {
            service.circuit.suspect();
            for _ in 0..60 {
                pass(PROBE_PAUSE).await;
                service.circuit.answered("test");
                assert!(!service.circuit.is_open());
            }
            assert!(service.asked.load(Ordering::SeqCst) > 10);
            // Then it says nothing at all.
            pass((PROBE_DEADLINE + PROBE_PAUSE) * 4).await;
            assert!(service.circuit.is_open());
        })
        .await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_service_that_is_silent_is_found_dead_within_three_seconds() {
        let service = Scripted::new(Mood::Silent);
        beside(&service, async {
            service.circuit.suspect();
            pass(PROBE_DEADLINE + PROBE_PAUSE).await;
            assert!(!service.circuit.is_open());
            pass(PROBE_DEADLINE + Duration::from_millis(50)).await;
            assert!(service.circuit.is_open());
        })
        .await;
    }
}
