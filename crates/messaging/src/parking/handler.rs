//! The consumer's side of the bus: lets deliveries through, or parks them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;

use super::{InFlightPermit, Parking};
use crate::bus::{Delivery, Handler, Outcome};

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

    /// Takes so many deliveries in flight, if there is room for all of them and no other event waits for its turn.
    fn let_through(&self, fresh: usize) -> Option<InFlightPermit> {
        let is_fair = !self.shared.may_hold_unclaimed.load(Ordering::Relaxed);
        is_fair.then(|| self.shared.try_start(fresh)).flatten()
    }

    async fn park_deliveries(&self, deliveries: &[&Delivery]) -> Result<(), String> {
        let events = deliveries.iter().map(|delivery| delivery.repeat(false)).collect::<Result<_, _>>();
        let events = events.map_err(|error| error.to_string())?;
        self.park(events).await.map_err(|error| format!("the event was not parked: {error}"))?;
        self.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
        self.shared.changed.notify_one();
        Ok(())
    }
}

#[async_trait]
impl Handler for ParkingHandler {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        let (returned, fresh): (Vec<&Delivery>, Vec<&Delivery>) =
            deliveries.iter().partition(|delivery| delivery.is_returned);
        if fresh.is_empty() {
            return self.handler.handle(deliveries).await;
        }
        if let Some(_in_hand) = self.parking.let_through(fresh.len()) {
            return self.handler.handle(deliveries).await;
        }
        let outcome_of_parked = match self.parking.park_deliveries(&fresh).await {
            Ok(()) => Outcome::Done,
            Err(reason) => Outcome::Retry { reason },
        };
        let returned: Vec<Delivery> = returned.into_iter().cloned().collect();
        let outcomes = if returned.is_empty() { Vec::new() } else { self.handler.handle(&returned).await };
        let mut outcomes = outcomes.into_iter();
        let missing = || Outcome::Retry { reason: "the event was not handled".to_owned() };
        let outcome = |delivery: &Delivery| match delivery.is_returned {
            true => outcomes.next().unwrap_or_else(missing),
            false => outcome_of_parked.clone(),
        };
        deliveries.iter().map(outcome).collect()
    }

    async fn give_up(&self, delivery: &Delivery) -> Result<(), String> {
        self.handler.give_up(delivery).await
    }
}
