//! Sends what is due: many messages at the same time, to no endpoint more than its share.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_contracts::ids::WebhookId;
use assay_platform::db::DatabaseError;
use assay_platform::runtime::{BoxError, new_id, now, random_bytes, within};
use futures_util::future::join;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::Poster;
use crate::domain::attempt::Claim;
use crate::domain::schedule::{Schedule, Verdict};
use crate::metrics;
use crate::store::{ClaimTerms, Settlement, WebhookStore};

/// A hold lasts so much longer than an attempt can take, for the database to be told of it.
const LEASE_MARGIN: Duration = Duration::from_secs(15);

/// How long a process that was asked to stop waits for the attempts under way, while it hands back what it took last. Attempts
/// that take longer are dropped, and made again by others when their holds end. Well below `shutdown.phase_seconds`.
const LAST_DEADLINE: Duration = Duration::from_secs(12);

/// Attempts at recording an attempt: a short outage of the database must not cost a second delivery.
const SETTLE_ATTEMPTS: u32 = 3;
const SETTLE_PAUSE: Duration = Duration::from_millis(500);

/// How much is sent at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderLimits {
    /// Attempts under way at most.
    pub(crate) concurrency: usize,
    /// At one endpoint at most.
    pub(crate) per_endpoint: usize,
    /// How long one may take.
    pub(crate) attempt_deadline: Duration,
    /// How often due messages are looked for that nobody told of.
    pub(crate) poll_interval: Duration,
}

/// What messages are sent with.
pub(crate) struct Sender {
    pub(crate) store: Arc<dyn WebhookStore>,
    pub(crate) poster: Poster,
    pub(crate) schedule: Schedule,
    pub(crate) limits: SenderLimits,
    pub(crate) news: Arc<Notify>,
}

type Claiming = Pin<Box<dyn Future<Output = Result<Vec<Claim>, DatabaseError>> + Send>>;

/// Sends until `stop`.
///
/// # Errors
/// None: every failure is a message's or is waited out.
pub(crate) async fn send_messages(sender: Arc<Sender>, stop: CancellationToken) -> Result<(), BoxError> {
    let mut under_way = FuturesUnordered::new();
    let mut held: HashMap<WebhookId, usize> = HashMap::new();
    let mut claiming: Option<Claiming> = Some(sender.claim(&held));
    while !stop.is_cancelled() {
        // The claim is polled beside the attempts, so that neither waits for the other.
        let claimed = async {
            match claiming.as_mut() {
                Some(claiming) => claiming.await,
                None => pending().await,
            }
        };
        let is_to_be_looked_for = tokio::select! {
            () = stop.cancelled() => false,
            claimed = claimed => {
                claiming = None;
                let claims = claimed.unwrap_or_else(|error| {
                    tracing::warn!(cause = %error, "messages cannot be looked for: tried again soon");
                    Vec::new()
                });
                let found = !claims.is_empty();
                for claim in claims {
                    *held.entry(claim.endpoint_id).or_default() += 1;
                    let sender = sender.clone();
                    under_way.push(async move { sender.deliver(claim).await });
                }
                found
            }
            Some(endpoint) = under_way.next(), if !under_way.is_empty() => {
                release(&mut held, endpoint);
                true
            }
            () = sender.news.notified() => true,
            () = tokio::time::sleep(sender.limits.poll_interval) => true,
        };
        if is_to_be_looked_for && claiming.is_none() && under_way.len() < sender.limits.concurrency {
            claiming = Some(sender.claim(&held));
        }
    }
    wind_up(sender.hand_back(claiming), under_way).await;
    Ok(())
}

/// Both at the same time: attempts go on only while they are polled.
async fn wind_up(hand_back: impl Future<Output = ()>, under_way: impl Stream<Item = WebhookId>) {
    let last = join(hand_back, under_way.for_each(|_| ready(())));
    if within(LAST_DEADLINE, last).await.is_none() {
        tracing::warn!("webhooks were still being sent: they are sent again when their holds end");
    }
}

fn release(held: &mut HashMap<WebhookId, usize>, endpoint: WebhookId) {
    if let Some(count) = held.get_mut(&endpoint) {
        *count = count.saturating_sub(1);
        if *count == 0 {
            held.remove(&endpoint);
        }
    }
}

impl Sender {
    /// Takes what there is room for. An endpoint gets half of its share at a time, and nothing while it has more than the other
    /// half: so it never has more than its share.
    fn claim(&self, held: &HashMap<WebhookId, usize>) -> Claiming {
        let SenderLimits { concurrency, per_endpoint, attempt_deadline, .. } = self.limits;
        let at_a_time = per_endpoint.div_ceil(2);
        let room = concurrency.saturating_sub(held.values().sum());
        let is_busy = |count: usize| count + at_a_time > per_endpoint;
        let busy = held.iter().filter(|(_, count)| is_busy(**count)).map(|(id, _)| *id).collect();
        let lease = attempt_deadline + LEASE_MARGIN;
        let lease_millis = i64::try_from(lease.as_millis()).unwrap_or(i64::MAX);
        let now = now();
        let terms = ClaimTerms {
            lease: new_id(),
            now,
            until: now.plus_millis(lease_millis),
            limit: room,
            per_endpoint: at_a_time,
            busy,
        };
        let store = self.store.clone();
        Box::pin(async move { store.claim(terms).await })
    }

    /// A claim that is under way may be committed: what it took is handed back.
    async fn hand_back(&self, claiming: Option<Claiming>) {
        let Some(claiming) = claiming else { return };
        let handed_back = match claiming.await {
            Ok(claims) => self.store.hand_back(claims, now()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = handed_back {
            tracing::warn!(cause = %error, "messages could not be handed back: their holds end by themselves");
        }
    }

    async fn deliver(&self, claim: Claim) -> WebhookId {
        let endpoint_id = claim.endpoint_id;
        let began = Instant::now();
        let attempt = self.poster.post(&claim).await;
        let now = now();
        // Without randomness attempts are not spread, which is no reason not to make them.
        let lot = random_bytes::<1>().map_or(0.0, |[byte]| f64::from(byte) / 255.0);
        let verdict = self.schedule.verdict(&attempt, claim.number_in_round(), now, lot);
        metrics::attempted(&verdict, began.elapsed());
        tracing::debug!(delivery = %claim.id, webhook = %endpoint_id, ?attempt, ?verdict, "webhook attempted");
        match verdict {
            Verdict::Gone => tracing::warn!(webhook = %endpoint_id, "webhook disabled: it answered 410"),
            Verdict::GivenUp => {
                tracing::warn!(webhook = %endpoint_id, delivery = %claim.id, "webhook message given up");
            }
            Verdict::Delivered | Verdict::RetryAt(_) => {}
        }
        let failing_since_before = self.schedule.patience.failing_since_before(now);
        self.settle(Settlement { claim, attempt, verdict, failing_since_before, now }).await;
        endpoint_id
    }

    /// What cannot be recorded is sent again when its hold has ended: a receiver knows it by its id.
    async fn settle(&self, settlement: Settlement) {
        for _ in 0..SETTLE_ATTEMPTS {
            match self.store.settle(settlement.clone()).await {
                Ok(true) => return,
                Ok(false) => {
                    tracing::debug!(delivery = %settlement.claim.id, "attempt not recorded: the message is not held");
                    return;
                }
                Err(error) => tracing::warn!(cause = %error, "attempt at a webhook cannot be recorded yet"),
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
        tracing::error!(delivery = %settlement.claim.id, "attempt at a webhook was not recorded: it is made again");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_come_to_their_end_while_the_database_does_not_answer() {
        let is_done = AtomicBool::new(false);
        let attempt = stream::once(async {
            tokio::time::sleep(LAST_DEADLINE / 2).await;
            is_done.store(true, Ordering::Relaxed);
            new_id()
        });
        let begun = tokio::time::Instant::now();
        wind_up(pending(), attempt).await;
        assert!(is_done.load(Ordering::Relaxed));
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_without_an_answer_does_not_hold_up_the_process() {
        let begun = tokio::time::Instant::now();
        wind_up(ready(()), stream::pending()).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    }
}
