//! Outages of the broker.

mod support;

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_messaging::{Outcome, PublishError};
use assay_platform::runtime::{CheckOutcome, Readiness};
use assay_testkit::proxy::LinkState;

use support::{ACCEPTED, Running, Scripted, accepted, behind_a_proxy, eventually, publish};

#[tokio::test]
async fn bus_opens_before_the_broker_is_up() -> Result<()> {
    let (proxy, bus) = behind_a_proxy().await?;
    proxy.cut();
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    let results = bus.publish(&[accepted()]).await;
    assert!(matches!(results[..], [Err(PublishError::Unavailable(_))]), "{results:?}");
    assert!(bus.ping().await.is_err());

    proxy.heal();
    eventually("the bus to be ready", || async { Ok(bus.ping().await.is_ok()) }).await?;
    publish(&bus, &accepted()).await?;
    handler.wait_for(1).await?;
    consumer.stop().await
}

#[tokio::test]
async fn publisher_and_consumer_reconnect_after_a_cut() -> Result<()> {
    let (proxy, bus) = behind_a_proxy().await?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    publish(&bus, &accepted()).await?;
    handler.wait_for(1).await?;
    for round in 1..=3 {
        proxy.cut();
        eventually("the outage to be noticed", || async { Ok(bus.ping().await.is_err()) }).await?;
        let results = bus.publish(&[accepted()]).await;
        assert!(matches!(results[..], [Err(PublishError::Unavailable(_))]), "round {round}: {results:?}");
        proxy.heal();
        eventually("the bus to be ready", || async { Ok(bus.ping().await.is_ok()) }).await?;
        publish(&bus, &accepted()).await?;
        handler.wait_for(round + 1).await?;
    }
    consumer.stop().await
}

#[tokio::test]
async fn silent_broker_degrades_readiness_without_delay() -> Result<()> {
    let (proxy, bus) = behind_a_proxy().await?;
    proxy.set(LinkState::Frozen);
    let readiness = Readiness::default();
    let pinged = bus.clone();
    readiness.register_degrading("bus", move || {
        let bus = pinged.clone();
        async move { bus.ping().await }
    });
    let began = Instant::now();
    let report = readiness.report().await;
    let first = began.elapsed();
    assert!(report.ready && report.checks["bus"] == CheckOutcome::Degraded, "{report:?}");
    // The second ping, while another caller is connecting.
    let events = [accepted()];
    let publishing = bus.publish(&events);
    let pinging = async {
        let began = Instant::now();
        assert!(bus.ping().await.is_err());
        began.elapsed()
    };
    let (_, second) = tokio::join!(publishing, pinging);
    assert!(first.max(second) < Duration::from_secs(1), "{first:?}, {second:?}");

    proxy.heal();
    // Nothing is published: `ping` reconnects.
    eventually("the bus to be ready", || async { Ok(bus.ping().await.is_ok()) }).await
}

#[tokio::test]
async fn deliveries_in_flight_at_a_cut_are_redelivered() -> Result<()> {
    let (proxy, bus) = behind_a_proxy().await?;
    let handler = Scripted::gated(|_| Outcome::Done);
    let consumer = Running::consumer(&bus, ACCEPTED, handler.clone());
    let event = accepted();
    publish(&bus, &event).await?;
    eventually("the handler to begin", || async { Ok(handler.begun() == 1) }).await?;
    proxy.cut();
    eventually("the outage to be noticed", || async { Ok(bus.ping().await.is_err()) }).await?;
    proxy.heal();
    eventually("the redelivery", || async { Ok(handler.begun() == 2) }).await?;
    handler.open();
    handler.wait_for(2).await?;
    consumer.stop().await?;
    assert_eq!(handler.ids(), [event.id()].into());
    let attempts: Vec<u32> = handler.deliveries().iter().map(|delivery| delivery.attempt).collect();
    assert_eq!(attempts, [1, 1], "a cut connection is no failed attempt");
    Ok(())
}

#[tokio::test]
async fn consumer_stops_during_an_outage() -> Result<()> {
    let (proxy, bus) = behind_a_proxy().await?;
    let (handler, consumer) = Running::done(&bus, ACCEPTED);
    publish(&bus, &accepted()).await?;
    handler.wait_for(1).await?;
    proxy.cut();
    eventually("the outage to be noticed", || async { Ok(bus.ping().await.is_err()) }).await?;
    consumer.stop().await
}
