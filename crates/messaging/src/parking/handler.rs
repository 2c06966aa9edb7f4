//! The handler between the bus and the consumer's handler: lets deliveries through, or parks them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::Parking;
use super::lane::InFlightPermit;
use crate::bus::{Delivery, Handler, Outcome, cut_short};

/// Lets through to a handler what it can handle at once, and parks all other deliveries.
struct ParkingHandler {
    parking: Parking,
    handler: Arc<dyn Handler>,
}

impl Parking {
    /// The handler of a subscription whose events are parked while `handler` has enough to do.
    pub fn in_front_of(&self, handler: Arc<dyn Handler>) -> Arc<dyn Handler> {
        Arc::new(ParkingHandler { parking: self.clone(), handler })
    }

    /// A permit to handle this number of deliveries at once, if there is room for all of them and no parked event waits for its turn.
    fn permit_at_once(&self, events: usize) -> Option<InFlightPermit> {
        if self.shared.may_hold_unclaimed.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.turns.try_acquire(events)
    }

    async fn park_deliveries(&self, deliveries: &[Delivery]) -> Result<(), String> {
        let events = deliveries.iter().map(Delivery::to_outgoing).collect::<Result<_, _>>();
        let events = events.map_err(|error| error.to_string())?;
        self.park(events).await.map_err(|error| format!("the event was not parked: {error}"))?;
        self.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
        self.shared.turns.wakeup.notify_one();
        Ok(())
    }
}

impl ParkingHandler {
    async fn handle_or_park(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        if let Some(_in_flight) = self.parking.permit_at_once(deliveries.len()) {
            return self.handler.handle(deliveries).await;
        }
        let outcome = match self.parking.park_deliveries(deliveries).await {
            Ok(()) => Outcome::Done,
            Err(reason) => Outcome::Retry { reason },
        };
        vec![outcome; deliveries.len()]
    }

    /// Handles deliveries chunk by chunk, each as soon as there is room for it; a chunk with an isolated event only when no
    /// other event is in flight.
    async fn handle_without_parking(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let shared = &self.parking.shared;
        let mut outcomes = Vec::with_capacity(deliveries.len());
        for chunk in deliveries.chunks(shared.turns.chunk_size.get()) {
            let is_isolated =
                chunk.iter().any(|delivery| delivery.times_cut_short >= cut_short::ISOLATION_THRESHOLD);
            let _in_flight = match is_isolated {
                true => (shared.turns.acquire_all().await, Some(shared.priority.acquire_all().await)),
                false => (shared.turns.acquire(chunk.len()).await, None),
            };
            outcomes.extend(self.handler.handle(chunk).await);
        }
        outcomes
    }
}

#[async_trait]
impl Handler for ParkingHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(deliveries.len());
        for group in deliveries.chunk_by(|one, next| may_be_parked(one) == may_be_parked(next)) {
            outcomes.extend(match group.iter().all(may_be_parked) {
                true => self.handle_or_park(group).await,
                false => self.handle_without_parking(group).await,
            });
        }
        outcomes
    }

    async fn give_up(&self, delivery: &Delivery) -> Result<(), String> {
        self.handler.give_up(delivery).await
    }
}

/// Returned events and events that may have ended the process are not parked: the bus retries or isolates them.
fn may_be_parked(delivery: &Delivery) -> bool {
    !delivery.is_returned && delivery.times_cut_short == 0
}
