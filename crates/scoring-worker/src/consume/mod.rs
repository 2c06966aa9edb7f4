//! Event handlers.

mod conversation_accepted;
mod conversation_deleted;
mod conversations_expired;

use assay_contracts::event::Event;
use assay_contracts::ids::EventId;
use assay_messaging::{Delivery, Outcome};

pub use self::conversation_accepted::QUEUE;
pub(crate) use self::conversation_accepted::{ConversationAcceptedHandler, subscription};
pub use self::conversation_deleted::QUEUE as DELETED_QUEUE;
pub(crate) use self::conversation_deleted::{
    ConversationDeletedHandler, subscription as deleted_subscription,
};
pub use self::conversations_expired::QUEUE as EXPIRED_QUEUE;
pub(crate) use self::conversations_expired::{
    ConversationsExpiredHandler, subscription as expired_subscription,
};

use crate::app::HandleError;

/// Handles a batch in one transaction. If the database refuses it permanently, the events are retried one by one, so that
/// one bad event does not block the others.
async fn handle_batch<E: Event, F>(
    deliveries: &[Delivery],
    work: impl Fn(Vec<(EventId, E)>) -> F,
) -> Vec<Outcome>
where
    F: Future<Output = Result<(), HandleError>>,
{
    let decode = |delivery: &Delivery| delivery.decode::<E>().map(|event| (delivery.id, event));
    let events: Vec<_> = deliveries.iter().filter_map(|delivery| decode(delivery).ok()).collect();
    let batch_result = work(events).await;
    let mut outcomes = Vec::with_capacity(deliveries.len());
    for delivery in deliveries {
        outcomes.push(match (decode(delivery), &batch_result) {
            (Err(error), _) => Outcome::Reject { reason: error.to_string() },
            (Ok(_), Ok(())) => Outcome::Done,
            (Ok(_), Err(error)) if error.is_transient() => Outcome::Retry { reason: error.to_string() },
            (Ok(event), Err(_)) => match work(vec![event]).await {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::Retry { reason: error.to_string() },
            },
        });
    }
    outcomes
}
