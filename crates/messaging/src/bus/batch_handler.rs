//! Consumers that handle the events of a batch in one transaction.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;

use assay_platform::runtime::BoxError;
use async_trait::async_trait;

use super::delivery::{Delivery, Handler, Outcome};

/// A [`Handler`] of decoded events.
#[async_trait]
pub trait BatchHandler: Send + Sync {
    /// A decoded delivery.
    type Event: Send;
    /// Why an event was not handled.
    type Error: Display;

    /// Decodes a delivery. An error makes it a dead letter.
    ///
    /// # Errors
    /// When no attempt can succeed.
    fn decode(&self, delivery: &Delivery) -> Result<Self::Event, BoxError>;

    /// Handles events and returns one result for each, in the same order. After the last attempt a failed event is a dead
    /// letter for an operator, unless the failure is transient.
    async fn handle_events(&self, events: Vec<Self::Event>) -> Vec<Result<(), Self::Error>>;

    /// Whether an error is that of an outage, which says nothing about the event: then the last attempt is repeated, however
    /// long the outage lasts.
    fn is_transient(_error: &Self::Error) -> bool {
        false
    }

    /// Decodes a delivery that is given up, perhaps from fewer fields than [`Self::decode`] needs; `None` when these cannot be read,
    /// either.
    fn decode_given_up(&self, delivery: &Delivery) -> Option<Self::Event> {
        self.decode(delivery).ok()
    }

    /// See [`Handler::give_up`].
    ///
    /// # Errors
    /// When that cannot be recorded at the moment.
    async fn give_up(&self, _event: Self::Event) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[async_trait]
impl<H: BatchHandler> Handler for H {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let mut events = Vec::with_capacity(deliveries.len());
        // For each delivery its rejection, or `None` when it was decoded: then its result decides.
        let mut rejections = Vec::with_capacity(deliveries.len());
        let mut last_attempts = Vec::with_capacity(deliveries.len());
        for delivery in deliveries {
            match self.decode(delivery) {
                Ok(event) => {
                    events.push(event);
                    last_attempts.push(delivery.is_last_attempt);
                    rejections.push(None);
                }
                Err(error) => rejections.push(Some(Outcome::Reject { reason: error.to_string() })),
            }
        }
        let results = if events.is_empty() { Vec::new() } else { self.handle_events(events).await };
        let mut outcomes = results.into_iter().zip(last_attempts).map(|(result, is_last)| match result {
            Ok(()) => Outcome::Done,
            Err(error) if is_last && H::is_transient(&error) => {
                Outcome::Postpone { reason: error.to_string() }
            }
            Err(error) => Outcome::Retry { reason: error.to_string() },
        });
        // A missing result must not count as success.
        let missing = || Outcome::Retry { reason: "the event was not handled".to_owned() };
        rejections
            .into_iter()
            .map(|rejection| rejection.or_else(|| outcomes.next()).unwrap_or_else(missing))
            .collect()
    }

    async fn give_up(&self, delivery: &Delivery) -> Result<(), String> {
        let Some(event) = self.decode_given_up(delivery) else { return Ok(()) };
        BatchHandler::give_up(self, event).await.map_err(|error| error.to_string())
    }
}

/// Runs `work` on all items together and returns a result for each item. If the work fails permanently, it runs again on
/// each item alone, so that one bad item does not block the others. A transient failure is the result of all items.
/// `work` shares the items and does not copy them.
pub async fn all_or_each<T, E, F>(
    items: Vec<T>,
    is_transient: impl Fn(&E) -> bool,
    work: impl Fn(Arc<Vec<T>>) -> F,
) -> Vec<Result<(), Arc<E>>>
where
    T: Clone,
    F: Future<Output = Result<(), E>>,
{
    let count = items.len();
    let items = Arc::new(items);
    let Err(error) = work(items.clone()).await else { return vec![Ok(()); count] };
    if count == 1 || is_transient(&error) {
        return vec![Err(Arc::new(error)); count];
    }
    let mut results = Vec::with_capacity(count);
    // No call of `work` is running: this is the last reference.
    for item in Arc::unwrap_or_clone(items) {
        results.push(work(Arc::new(vec![item])).await.map_err(Arc::new));
    }
    results
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use assay_contracts::event::ConversationAccepted;
    use assay_platform::runtime::{new_id, now};

    use super::*;
    use crate::envelope::OutgoingEvent;

    struct Failing(&'static str);

    #[async_trait]
    impl BatchHandler for Failing {
        type Event = ();
        type Error = &'static str;

        fn decode(&self, _: &Delivery) -> Result<(), BoxError> {
            Ok(())
        }

        async fn handle_events(&self, events: Vec<()>) -> Vec<Result<(), Self::Error>> {
            events.iter().map(|()| Err(self.0)).collect()
        }

        fn is_transient(error: &Self::Error) -> bool {
            *error == "outage"
        }
    }

    #[tokio::test]
    async fn last_attempt_is_repeated_while_an_outage_lasts() {
        let accepted =
            ConversationAccepted { organization_id: new_id(), ticket_id: new_id(), accepted_at: now() };
        let event = OutgoingEvent::new(new_id(), now(), &accepted).unwrap();
        let mut deliveries =
            [1, 2].map(|attempt| Delivery::parse(event.payload().as_bytes(), attempt).unwrap());
        deliveries[1].is_last_attempt = true;
        let retry = |reason: &str| Outcome::Retry { reason: reason.to_owned() };
        let postpone = Outcome::Postpone { reason: "outage".to_owned() };
        assert_eq!(Failing("outage").handle(&deliveries).await, [retry("outage"), postpone]);
        assert_eq!(Failing("refused").handle(&deliveries).await, [retry("refused"), retry("refused")]);
    }

    #[tokio::test]
    async fn refused_batch_is_split_into_single_items() {
        let (results, calls) = run(&[1, 2, 3], "refused", |items| items.contains(&2)).await;
        assert_eq!(results, [Ok(()), Err("refused"), Ok(())]);
        assert_eq!(calls, [vec![1, 2, 3], vec![1], vec![2], vec![3]]);
    }

    #[tokio::test]
    async fn transient_failure_is_the_result_of_all_items() {
        let (results, calls) = run(&[1, 2], "outage", |items| items.contains(&2)).await;
        assert_eq!(results, [Err("outage"), Err("outage")]);
        assert_eq!(calls.len(), 1);
    }

    #[tokio::test]
    async fn single_refused_item_is_tried_once() {
        let (results, calls) = run(&[2], "refused", |_| true).await;
        assert_eq!(results, [Err("refused")]);
        assert_eq!(calls.len(), 1);
    }

    type Results = Vec<Result<(), &'static str>>;

    async fn run(items: &[u8], error: &'static str, fails: fn(&[u8]) -> bool) -> (Results, Vec<Vec<u8>>) {
        let calls = Mutex::<Vec<Vec<u8>>>::default();
        let work = |items: Arc<Vec<u8>>| {
            let failed = fails(&items);
            calls.lock().unwrap().push(items.to_vec());
            async move { if failed { Err(error) } else { Ok(()) } }
        };
        let results = all_or_each(items.to_vec(), |error| *error == "outage", work).await;
        let results = results.into_iter().map(|result| result.map_err(|error| *error)).collect();
        (results, calls.into_inner().unwrap())
    }
}
