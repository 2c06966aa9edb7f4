//! Workers of both lanes.

use super::*;
use crate::parking::Shared;
use crate::parking::lane::WORKERS;
use crate::parking::worker::MAX_FAILURES;

on_both_databases! { Tables {
    chunk_without_claimable_events_wakes_no_worker,
    parked_event_without_room_is_not_overtaken,
    priority_lane_handles_small_backlogs_only,
    organizations_of_a_failed_chunk_are_left_to_the_turns,
    delivery_cut_short_twice_is_isolated_and_not_parked,
    event_that_ended_two_processes_returns_with_its_count,
    lone_event_that_always_fails_returns_after_many_failures,
} }

async fn chunk_without_claimable_events_wakes_no_worker(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 2..=2);
    for organization in organizations() {
        park(&parking, organization, 1).await?;
    }
    assert_eq!(claim(&parking, now(), 4).await?.len(), 3);
    let work = work(&parking, Arc::new(Recorder::default()))?;
    let stop = CancellationToken::new();
    for _ in 0..3 {
        assert_eq!(parking.handle_chunk(&work, 0, &stop).await, Ok(false));
        let woken = timeout(Duration::from_millis(50), parking.shared.turns.wakeup.notified()).await;
        assert!(woken.is_err(), "it would look again at once, forever");
        assert!(!parking.shared.may_hold_unclaimed.load(Ordering::Relaxed), "deliveries need not be parked");
    }
    assert!(
        parking.shared.turns.try_acquire(WORKERS * parking.shared.turns.chunk_size.get()).is_some(),
        "every permit is released"
    );
    Ok(())
}

async fn parked_event_without_room_is_not_overtaken(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 2..=2);
    park(&parking, new_id(), 1).await?;
    let work = work(&parking, Arc::new(Recorder::default()))?;
    // Of the four permits one is left: too few for a chunk.
    let _in_flight = parking.shared.turns.try_acquire(3).expect("room");
    assert_eq!(parking.handle_chunk(&work, 0, &CancellationToken::new()).await, Ok(false));
    assert!(parking.shared.may_hold_unclaimed.load(Ordering::Relaxed));
    Ok(())
}

async fn priority_lane_handles_small_backlogs_only(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 8..=8);
    let [large, small, other] = organizations();
    for (organization, events) in [(large, 201), (small, 2), (other, 3)] {
        park(&parking, organization, events).await?;
    }
    let handler = Arc::new(Recorder::default());
    let (unused, priority_handler) = (Arc::new(Recorder::default()), handler.clone());
    let work = ParkedWork { priority_handler, ..work(&parking, unused.clone())? };
    let stop = CancellationToken::new();
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(false), "no delivery has to wait");
    parking.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(true));
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(false));
    let handled = [handler, unused].map(|handler| handler.times_cut_short().len());
    assert_eq!((handled, parking.count(1_000).await?), ([5, 0], 201));
    let done = claim(&parking, now(), 1).await?.iter().map(ParkedEvent::key).collect();
    parking.settle(Settled { done, ..Settled::default() }).await?;
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(true), "its backlog is small now");
    Ok(())
}

async fn delivery_cut_short_twice_is_isolated_and_not_parked(Tables(database, _): Tables) -> Result<()> {
    let parking = Parking::new(database, 2..=2);
    let handler = Arc::new(Recorder::default());
    let in_front = parking.in_front_of(handler.clone());
    let Shared { turns, priority, .. } = &*parking.shared;
    for (times_cut_short, lane, others) in [(1, turns, 3), (2, turns, 1), (2, priority, 1)] {
        let mut delivery = Delivery::parse(event(new_id()).payload.as_bytes(), 1)?;
        delivery.times_cut_short = times_cut_short;
        let in_flight = lane.try_acquire(others).expect("room");
        let deliveries = [delivery];
        let handling = in_front.handle(&deliveries);
        tokio::pin!(handling);
        if times_cut_short == 2 {
            let early = timeout(Duration::from_millis(50), &mut handling).await;
            assert!(early.is_err(), "another event is in flight");
            let begins = turns.try_acquire(1).is_some() || lane.try_acquire(2).is_some();
            assert!(!begins, "nothing else begins before it");
            drop(in_flight);
        }
        // An event cut short once is handled beside those in flight: `in_flight` lives until the end of the round.
        assert_eq!(handling.await, [Outcome::Done]);
    }
    assert_eq!(handler.times_cut_short(), [1, 2, 2]);
    assert_eq!(parking.count(10).await?, 0);
    Ok(())
}

async fn event_that_ended_two_processes_returns_with_its_count(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 2..=2), Outbox::new(database));
    park(&parking, new_id(), 1).await?;
    // Two claims whose leases have expired: their processes ended.
    for leases in [4, 2] {
        assert_eq!(claim(&parking, now().plus_millis(-leases * LEASE_MILLIS), 1).await?.len(), 1);
    }
    let handler = Arc::new(Recorder::default());
    let bus = local_bus(parking.in_front_of(handler.clone())).await?;
    let work = ParkedWork { outbox: outbox.clone(), bus: bus.clone(), ..work(&parking, handler.clone())? };
    let stop = CancellationToken::new();
    let relay = tokio::spawn(outbox::relay(outbox, bus, stop.clone()));
    // By then the relay has looked for isolated events and found none: the returned event must make it look again.
    sleep(crate::bus::cut_short::ISOLATION_START_DELAY + Duration::from_millis(1_500)).await;
    assert_eq!(parking.handle_chunk(&work, 0, &stop).await, Ok(true));
    while handler.times_cut_short().is_empty() {
        sleep(Duration::from_millis(10)).await;
    }
    stop.cancel();
    relay.await?;
    assert_eq!((handler.times_cut_short(), parking.count(10).await?), (vec![2], 0));
    Ok(())
}

async fn lone_event_that_always_fails_returns_after_many_failures(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 2..=2), Outbox::new(database));
    park(&parking, new_id(), 1).await?;
    let work = work(&parking, Arc::new(Recorder { fails: true, ..Recorder::default() }))?;
    let stop = CancellationToken::new();
    for failures in 0..MAX_FAILURES {
        let handled = parking.handle_chunk(&work, failures, &stop).await;
        assert_eq!(handled, Err("always".to_owned()), "{failures}");
    }
    assert_eq!((parking.count(10).await?, outbox.status().await?.pending), (1, 0));
    assert_eq!(parking.handle_chunk(&work, MAX_FAILURES, &stop).await, Ok(true));
    assert_eq!((parking.count(10).await?, outbox.status().await?.pending), (0, 1));
    Ok(())
}

async fn organizations_of_a_failed_chunk_are_left_to_the_turns(Tables(database, _): Tables) -> Result<()> {
    let (parking, outbox) = (Parking::new(database.clone(), 2..=2), Outbox::new(database));
    let [failing, other, _] = organizations();
    park(&parking, failing, 1).await?;
    let work = work(&parking, Arc::new(Recorder { fails: true, ..Recorder::default() }))?;
    let stop = CancellationToken::new();
    parking.shared.may_hold_unclaimed.store(true, Ordering::Relaxed);
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Err("always".to_owned()));
    assert!(parking.shared.may_hold_unclaimed.load(Ordering::Relaxed), "it is claimable again");
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Ok(false), "at once it would fail again");
    parking.shared.priority.exclude(vec![failing], Duration::ZERO);
    assert_eq!(parking.handle_priority_chunk(&work, &stop).await, Err("always".to_owned()), "again, later");
    park(&parking, other, 1).await?;
    let handler = Arc::new(Recorder::default());
    let of_other = ParkedWork { priority_handler: handler.clone(), ..work };
    assert_eq!(parking.handle_priority_chunk(&of_other, &stop).await, Ok(true));
    assert_eq!((handler.times_cut_short().len(), parking.count(10).await?), (1, 1));
    assert_eq!(parking.handle_chunk(&of_other, MAX_FAILURES, &stop).await, Ok(true), "the turns return it");
    assert_eq!((parking.count(10).await?, outbox.status().await?.pending), (0, 1));
    Ok(())
}
