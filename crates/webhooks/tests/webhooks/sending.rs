//! Claims of due messages, and the results of attempts.

use std::collections::{HashMap, HashSet};

use anyhow::Result;
use assay_contracts::webhook::{DeliveryStatus, DisabledReason, WebhookChange};
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;
use assay_webhooks::domain::attempt::ClaimedMessage;
use assay_webhooks::domain::endpoint::EndpointReference;
use assay_webhooks::domain::schedule::RetryDecision;
use assay_webhooks::store::{ClaimTerms, ReplayOutcome};

use crate::fixture::{DAY, ENDPOINT_LIMIT, Fixture, NOW, later};

on_both_databases! { Fixture {
    message_is_leased_to_one_sender_until_expiry,
    concurrent_claims_get_distinct_messages,
    busy_endpoint_does_not_starve_others,
    claims_respect_limit_of_organization,
    organization_with_few_messages_in_flight_comes_first,
    attempt_is_recorded_once_by_lease_owner,
    failed_message_is_retried_later,
    released_messages_are_due_at_once,
    disabled_endpoint_gets_pending_messages_once_enabled,
    endpoint_failing_for_days_is_disabled,
    endpoint_answering_410_is_disabled,
    replay_restarts_schedule_with_same_id,
    message_without_payload_is_not_sent,
    late_response_of_previous_url_does_not_disable,
    given_up_messages_of_previous_url_do_not_count,
    failures_of_previous_url_are_forgotten,
    unknown_event_names_do_not_block_messages,
} }

async fn message_is_leased_to_one_sender_until_expiry(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(1).await?;
    assert!(fixture.claim_all(later(-1)).await?.is_empty(), "it is not due yet");
    let claim = fixture.claim_one(NOW).await?;
    assert_eq!((claim.endpoint_id, claim.url.as_str()), (endpoint.id, "https://hooks.example.com/"));
    assert!(claim.payload.contains("evaluation.completed") && claim.attempt_in_cycle() == 1);
    assert!(fixture.claim_all(later(29)).await?.is_empty());
    let again = fixture.claim_one(later(30)).await?;
    assert_eq!(again.id, claim.id);
    assert!(
        !fixture.record_attempt(claim, 204, RetryDecision::Delivered, later(31)).await?,
        "the lease expired"
    );
    assert!(fixture.record_attempt(again, 204, RetryDecision::Delivered, later(31)).await?);
    assert!(fixture.claim_all(later(99_999)).await?.is_empty());
    Ok(())
}

async fn concurrent_claims_get_distinct_messages(fixture: Fixture) -> Result<()> {
    fixture.create_with_messages(40).await?;
    let claims = (0..8).map(|_| fixture.store.claim(fixture.terms(NOW, 10, 10)));
    let claims: Vec<_> =
        futures_util::future::join_all(claims).await.into_iter().collect::<Result<_, _>>()?;
    let ids: Vec<_> = claims.iter().flatten().map(|claim| claim.id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "a message was claimed twice");
    assert_eq!(ids.len() + fixture.claim_all(NOW).await?.len(), 40);
    Ok(())
}

async fn busy_endpoint_does_not_starve_others(fixture: Fixture) -> Result<()> {
    let slow = fixture.create_endpoint().await?;
    fixture.announce(50).await?;
    let quick = fixture.create_endpoint().await?;
    fixture.announce(1).await?;
    let claims = fixture.store.claim(fixture.terms(NOW, 8, 4)).await?;
    let count_of = |id| claims.iter().filter(|claim| claim.endpoint_id == id).count();
    assert_eq!((count_of(slow.id), count_of(quick.id)), (4, 1));
    let busy = ClaimTerms { busy: vec![slow.id], ..fixture.terms(NOW, 8, 4) };
    assert!(fixture.store.claim(busy).await?.is_empty(), "a busy endpoint is skipped");
    Ok(())
}

async fn claims_respect_limit_of_organization(mut fixture: Fixture) -> Result<()> {
    let (one, other) = (fixture.organization_id, new_id());
    for organization_id in [one, other] {
        fixture.organization_id = organization_id;
        for _ in 0..ENDPOINT_LIMIT {
            fixture.create_endpoint().await?;
        }
        fixture.announce(4).await?;
    }
    let counts = |claims: &[ClaimedMessage]| {
        [one, other].map(|id| claims.iter().filter(|claim| claim.organization_id == id).count())
    };
    let terms = ClaimTerms { per_organization: 6, ..fixture.terms(NOW, 99, 4) };
    assert_eq!(counts(&fixture.store.claim(terms).await?), [6, 6]);
    let in_flight = HashMap::from([(one, 6), (other, 4)]);
    let terms = ClaimTerms { per_organization: 6, in_flight, ..fixture.terms(NOW, 99, 4) };
    assert_eq!(counts(&fixture.store.claim(terms).await?), [0, 2]);
    Ok(())
}

async fn organization_with_few_messages_in_flight_comes_first(mut fixture: Fixture) -> Result<()> {
    let busy = fixture.organization_id;
    for _ in 0..ENDPOINT_LIMIT {
        fixture.create_endpoint().await?;
    }
    fixture.announce(4).await?;
    fixture.organization_id = new_id();
    fixture.create_with_messages(4).await?;
    for _ in 0..4 {
        let in_flight = HashMap::from([(busy, 3)]);
        let terms = ClaimTerms { per_organization: 9, in_flight, ..fixture.terms(NOW, 1, 4) };
        let claims = fixture.store.claim(terms).await?;
        assert!(matches!(claims.as_slice(), [claim] if claim.organization_id == fixture.organization_id));
    }
    Ok(())
}

async fn attempt_is_recorded_once_by_lease_owner(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(1).await?;
    let claim = fixture.claim_one(NOW).await?;
    assert!(fixture.record_attempt(claim.clone(), 204, RetryDecision::Delivered, later(1)).await?);
    assert!(!fixture.record_attempt(claim.clone(), 500, RetryDecision::GivenUp, later(2)).await?);
    let found = fixture.store.find_delivery(endpoint.reference(), claim.id).await?.unwrap();
    assert_eq!((found.delivery.status, found.delivery.attempts), (DeliveryStatus::Delivered, 1));
    assert_eq!(found.attempts.len(), 1);
    let attempt = &found.attempts[0];
    assert_eq!((attempt.number, attempt.status_code, attempt.duration_ms), (1, Some(204), 12));
    let foreign = EndpointReference { organization_id: new_id(), id: endpoint.id };
    for reference in [foreign, fixture.reference(new_id())] {
        assert!(fixture.store.find_delivery(reference, claim.id).await?.is_none());
    }
    Ok(())
}

async fn failed_message_is_retried_later(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(1).await?;
    let claim = fixture.claim_one(NOW).await?;
    assert!(fixture.record_attempt(claim.clone(), 500, RetryDecision::RetryAt(later(5)), NOW).await?);
    assert_eq!(fixture.find(endpoint.id).await?.failing_since, Some(NOW));
    assert!(fixture.claim_all(later(4)).await?.is_empty());
    let again = fixture.claim_one(later(5)).await?;
    assert_eq!((again.id, again.attempt_in_cycle()), (claim.id, 2));
    fixture.record_attempt(again, 204, RetryDecision::Delivered, later(6)).await?;
    assert_eq!(fixture.find(endpoint.id).await?.failing_since, None);
    Ok(())
}

async fn released_messages_are_due_at_once(fixture: Fixture) -> Result<()> {
    fixture.create_with_messages(3).await?;
    let claims = fixture.store.claim(fixture.terms(NOW, 3, 3)).await?;
    fixture.store.release(claims[..2].to_vec(), NOW).await?;
    assert_eq!(fixture.claim_all(NOW).await?.len(), 2);
    Ok(())
}

async fn disabled_endpoint_gets_pending_messages_once_enabled(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(2).await?;
    let set = |enabled| WebhookChange { enabled: Some(enabled), ..WebhookChange::default() };
    fixture.store.change(endpoint.reference(), set(false), NOW).await?;
    fixture.announce(1).await?;
    assert!(fixture.claim_all(NOW).await?.is_empty());
    fixture.store.change(endpoint.reference(), set(true), NOW).await?;
    assert_eq!(fixture.claim_all(NOW).await?.len(), 2, "messages queued before the endpoint was disabled");
    Ok(())
}

async fn endpoint_failing_for_days_is_disabled(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(6).await?;
    fixture.give_up_one(NOW).await?;
    for _ in 0..3 {
        fixture.give_up_one(later(6 * DAY)).await?;
    }
    assert!(fixture.find(endpoint.id).await?.enabled, "four messages are too few");
    fixture.give_up_one(later(6 * DAY)).await?;
    let found = fixture.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.disabled_reason), (false, Some(DisabledReason::Failing)));
    Ok(())
}

async fn endpoint_answering_410_is_disabled(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(1).await?;
    let claim = fixture.claim_one(NOW).await?;
    fixture.record_attempt(claim.clone(), 410, RetryDecision::Gone, NOW).await?;
    let found = fixture.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.disabled_reason), (false, Some(DisabledReason::Gone)));
    assert_eq!(fixture.delivery(endpoint.id, claim.id).await?.status, DeliveryStatus::Failed);
    assert!(fixture.store.evaluation_subscribers(None, 10).await?.is_empty());
    Ok(())
}

async fn replay_restarts_schedule_with_same_id(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(1).await?;
    let claim = fixture.claim_one(NOW).await?;
    fixture.record_attempt(claim.clone(), 500, RetryDecision::GivenUp, NOW).await?;
    let replay = |id| fixture.store.replay(endpoint.reference(), id, later(60));
    assert_eq!(replay(new_id()).await?, ReplayOutcome::NotFound);
    assert_eq!(replay(claim.id).await?, ReplayOutcome::Queued);
    let again = fixture.claim_one(later(60)).await?;
    assert_eq!((again.id, again.attempts, again.attempt_in_cycle()), (claim.id, 1, 1));
    // A message in flight stays leased.
    assert_eq!(replay(claim.id).await?, ReplayOutcome::Queued);
    assert!(fixture.record_attempt(again, 204, RetryDecision::Delivered, later(61)).await?);
    Ok(())
}

async fn message_without_payload_is_not_sent(fixture: Fixture) -> Result<()> {
    fixture.create_with_messages(2).await?;
    assert_eq!(fixture.execute("UPDATE deliveries SET payload = NULL").await?, 2);
    let claims = fixture.claim_all(NOW).await?;
    assert!(claims.is_empty(), "{claims:?}");
    Ok(())
}

fn new_url() -> WebhookChange {
    WebhookChange { url: Some("https://new.example.com/".into()), ..WebhookChange::default() }
}

async fn late_response_of_previous_url_does_not_disable(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(3).await?;
    let [gone, failing, delivered] = [(); 3].map(|()| fixture.claim_one(NOW));
    let (gone, failing, delivered) = (gone.await?, failing.await?, delivered.await?);
    fixture.store.change(endpoint.reference(), new_url(), NOW).await?;
    assert!(fixture.record_attempt(gone, 410, RetryDecision::Gone, later(1)).await?);
    assert!(fixture.record_attempt(failing, 500, RetryDecision::RetryAt(later(9)), later(1)).await?);
    let found = fixture.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.disabled_reason, found.failing_since), (true, None, None));
    // A success at the previous URL does not count for the new one, either.
    let other = fixture.claim_one(later(9)).await?;
    fixture.record_attempt(other, 500, RetryDecision::RetryAt(later(20)), later(9)).await?;
    assert!(fixture.record_attempt(delivered, 204, RetryDecision::Delivered, later(10)).await?);
    assert_eq!(fixture.find(endpoint.id).await?.failing_since, Some(later(9)));
    Ok(())
}

async fn given_up_messages_of_previous_url_do_not_count(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(6).await?;
    fixture.give_up_one(NOW).await?;
    let late = fixture.claim_all(later(6 * DAY)).await?;
    assert_eq!(late.len(), 5);
    fixture.store.change(endpoint.reference(), new_url(), later(6 * DAY)).await?;
    for claim in late {
        assert!(fixture.record_attempt(claim, 500, RetryDecision::GivenUp, later(6 * DAY)).await?);
    }
    assert!(fixture.find(endpoint.id).await?.enabled);
    Ok(())
}

async fn failures_of_previous_url_are_forgotten(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(6).await?;
    for time in [NOW, later(4 * DAY), later(4 * DAY), later(4 * DAY)] {
        fixture.give_up_one(time).await?;
    }
    fixture.store.change(endpoint.reference(), new_url(), later(5 * DAY)).await?;
    assert_eq!(fixture.find(endpoint.id).await?.failing_since, None);
    for _ in 0..2 {
        fixture.give_up_one(later(6 * DAY)).await?;
    }
    let found = fixture.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.failing_since), (true, Some(later(6 * DAY))));
    Ok(())
}

async fn unknown_event_names_do_not_block_messages(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    let changed =
        fixture.execute("UPDATE endpoints SET events = 'evaluation.completed ticket.reopened'").await?;
    assert_eq!(changed, 1);
    let other = fixture.create_endpoint().await?;
    fixture.announce(1).await?;
    let claims = fixture.claim_all(NOW).await?;
    let endpoints: HashSet<_> = claims.iter().map(|claim| claim.endpoint_id).collect();
    assert_eq!(endpoints, HashSet::from([endpoint.id, other.id]));
    // A change of another field keeps the unknown names.
    let change = WebhookChange { description: Some("Support".into()), ..WebhookChange::default() };
    fixture.store.change(endpoint.reference(), change, NOW).await?;
    let kept = "UPDATE endpoints SET updated_at = 0 WHERE events LIKE '%ticket.reopened'";
    assert_eq!(fixture.execute(kept).await?, 1);
    Ok(())
}
