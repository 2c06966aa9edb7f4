//! Sends due messages concurrently, with limits for the process, each endpoint and each organization.

use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_platform::db::{Clock, DatabaseError};
use assay_platform::runtime::{new_id, now, random_bytes, timeout};
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::WebhookClient;
use super::in_flight::{InFlight, Recipient};
use crate::domain::attempt::ClaimedMessage;
use crate::domain::schedule::{RetryDecision, Schedule};
use crate::metrics;
use crate::store::{AttemptResult, ClaimTerms, WebhookStore};

/// A lease outlasts the attempt deadline by this margin, which leaves time to record the result.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// How long a shutdown waits for attempts in flight. Attempts that take longer are dropped and repeated when their
/// leases expire. Well below `shutdown.phase_seconds`.
const DRAIN_DEADLINE: Duration = Duration::from_secs(12);

/// Maximum number of tries to record a result: a short database outage must not cause a second attempt.
const RECORD_TRIES: u32 = 3;
const RECORD_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderLimits {
    /// Maximum number of attempts in flight.
    pub(crate) concurrency: usize,
    /// Maximum number of attempts in flight to one endpoint.
    pub(crate) per_endpoint: usize,
    /// Maximum number of attempts in flight to the endpoints of one organization: slow ones leave capacity to the others.
    pub(crate) per_organization: usize,
    pub(crate) attempt_deadline: Duration,
    /// Interval between two polls for due messages.
    pub(crate) poll_interval: Duration,
}

pub(crate) struct Sender {
    pub(crate) store: WebhookStore,
    pub(crate) client: WebhookClient,
    pub(crate) schedule: Schedule,
    pub(crate) limits: SenderLimits,
    pub(crate) wakeup: Arc<Notify>,
    pub(crate) clock: Clock,
}

type Claiming = Pin<Box<dyn Future<Output = Result<Vec<ClaimedMessage>, DatabaseError>> + Send>>;

/// Sends until `stop`. A failed attempt is recorded for its message; a failed claim is repeated. Before the clocks are compared
/// and while the clock is wrong nothing is claimed: messages would be sent early, or twice because the leases of other
/// processes seem to have expired.
pub(crate) async fn send_messages(sender: Arc<Sender>, stop: CancellationToken) {
    stop.run_until_cancelled(sender.clock.wait_for_comparison()).await;
    let mut attempts = FuturesUnordered::new();
    let mut in_flight = InFlight::default();
    let mut claiming: Option<Claiming> = sender.clock.is_trusted().then(|| sender.claim(&in_flight));
    while !stop.is_cancelled() {
        // The claim and the attempts are polled concurrently, so that neither waits for the other.
        let claim_finished = async {
            match claiming.as_mut() {
                Some(claiming) => claiming.await,
                None => pending().await,
            }
        };
        let should_claim = tokio::select! {
            () = stop.cancelled() => false,
            claimed = claim_finished => {
                claiming = None;
                let messages = claimed.unwrap_or_else(|error| {
                    tracing::warn!(cause = %error, "due messages cannot be claimed: trying again soon");
                    Vec::new()
                });
                let has_claimed = !messages.is_empty();
                for message in messages {
                    in_flight.begin(Recipient::of(&message));
                    let sender = sender.clone();
                    attempts.push(async move { sender.deliver(message).await });
                }
                has_claimed
            }
            Some(recipient) = attempts.next(), if !attempts.is_empty() => {
                in_flight.end(recipient);
                true
            }
            () = sender.wakeup.notified() => true,
            () = tokio::time::sleep(sender.limits.poll_interval) => true,
        };
        if should_claim
            && sender.clock.is_trusted()
            && claiming.is_none()
            && attempts.len() < sender.limits.concurrency
        {
            claiming = Some(sender.claim(&in_flight));
        }
    }
    drain(sender.release_claimed(claiming), attempts).await;
}

/// Releases the last claim and finishes the attempts, concurrently: attempts make progress only while they are polled.
async fn drain(release: impl Future<Output = ()>, attempts: impl Stream<Item = Recipient>) {
    let finished = join(release, attempts.for_each(|_| ready(())));
    if timeout(DRAIN_DEADLINE, finished).await.is_none() {
        tracing::warn!("webhooks were still being sent: they are sent again when their leases expire");
    }
}

impl Sender {
    /// Claims as many messages as the limits allow. A claim takes at most half of an endpoint's limit, and only from endpoints
    /// with at most the other half in flight: the limit is never exceeded.
    fn claim(&self, in_flight: &InFlight) -> Claiming {
        let SenderLimits { concurrency, per_endpoint, per_organization, attempt_deadline, .. } = self.limits;
        let per_claim = per_endpoint.div_ceil(2);
        let lease = attempt_deadline + LEASE_MARGIN;
        let lease_millis = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let now = now();
        let terms = ClaimTerms {
            lease: new_id(),
            now,
            lease_until: now.plus_millis(lease_millis),
            limit: concurrency.saturating_sub(in_flight.total()),
            per_endpoint: per_claim,
            busy: in_flight.endpoints_above(per_endpoint - per_claim),
            per_organization,
            in_flight: in_flight.by_organization(),
        };
        let store = self.store.clone();
        Box::pin(async move { store.claim(terms).await })
    }

    /// Waits for a claim in progress, which may have been committed, and releases its messages.
    async fn release_claimed(&self, claiming: Option<Claiming>) {
        let Some(claiming) = claiming else { return };
        let released = match claiming.await {
            Ok(messages) => self.store.release(messages, now()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = released {
            tracing::warn!(cause = %error, "messages could not be released: their leases expire by themselves");
        }
    }

    async fn deliver(&self, message: ClaimedMessage) -> Recipient {
        let recipient = Recipient::of(&message);
        let endpoint_id = message.endpoint_id;
        let started = Instant::now();
        let attempt = self.client.post(&message).await;
        let now = now();
        // Without randomness there is no jitter, and retries still work.
        let jitter = random_bytes::<1>().map_or(0.0, |[byte]| f64::from(byte) / 255.0);
        let decision = self.schedule.decide(&attempt, message.attempt_in_cycle(), now, jitter);
        metrics::record_attempt(&decision, started.elapsed());
        tracing::debug!(delivery = %message.id, webhook = %endpoint_id, ?attempt, ?decision, "webhook attempted");
        match decision {
            RetryDecision::Gone => {
                tracing::warn!(webhook = %endpoint_id, "webhook disabled: it answered 410")
            }
            RetryDecision::GivenUp => {
                tracing::warn!(webhook = %endpoint_id, delivery = %message.id, "webhook message given up");
            }
            RetryDecision::Delivered | RetryDecision::RetryAt(_) => {}
        }
        let disable_cutoff = self.schedule.failure_policy.disable_cutoff(now);
        self.record(AttemptResult { message, attempt, decision, disable_cutoff, now }).await;
        recipient
    }

    /// A message whose result cannot be recorded is sent again when its lease expires: receivers deduplicate by its id.
    async fn record(&self, result: AttemptResult) {
        for _ in 0..RECORD_TRIES {
            match self.store.record_attempt(result.clone()).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::debug!(delivery = %result.message.id, "attempt not recorded: the lease was lost");
                    return;
                }
                Err(error) => tracing::warn!(cause = %error, "webhook attempt cannot be recorded yet"),
            }
            tokio::time::sleep(RECORD_PAUSE).await;
        }
        tracing::error!(delivery = %result.message.id, "webhook attempt was not recorded: the message is sent again");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn drain_finishes_attempts_while_the_database_hangs() {
        let is_done = AtomicBool::new(false);
        let attempt = stream::once(async {
            tokio::time::sleep(DRAIN_DEADLINE / 2).await;
            is_done.store(true, Ordering::Relaxed);
            Recipient { endpoint: new_id(), organization: new_id() }
        });
        let started = tokio::time::Instant::now();
        drain(pending(), attempt).await;
        assert!(is_done.load(Ordering::Relaxed));
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn drain_gives_up_on_hanging_attempts() {
        let started = tokio::time::Instant::now();
        drain(ready(()), stream::pending()).await;
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }
}
