//! Endpoints, enqueued messages, retractions and maintenance.

use anyhow::Result;
use assay_contracts::ids::TicketId;
use assay_contracts::notification::EvaluationRetracted;
use assay_contracts::webhook::{DeliveryStatus, WebhookChange, WebhookEvent};
use assay_platform::auth::KeyRing;
use assay_platform::runtime::new_id;
use assay_platform::web::cursor::Position;
use assay_testkit::on_both_databases;
use assay_webhooks::domain::endpoint::EndpointReference;
use assay_webhooks::domain::message::{Message, test_message};
use assay_webhooks::domain::schedule::RetryDecision;
use assay_webhooks::domain::secret::{SECRET_BYTES, SealedSecrets, Secret};
use assay_webhooks::store::{
    CreateOutcome, Creation, LogPage, MAX_STORED_TESTS, ReceivedEvent, ReplayOutcome,
};

use crate::fixture::{DAY, ENDPOINT_LIMIT, Fixture, NOW, later};

/// Repetitions of a race.
const ROUNDS: usize = 40;

on_both_databases! { Fixture {
    endpoint_is_visible_to_its_organization_only,
    endpoint_limit_holds_under_concurrency,
    endpoints_are_listed_newest_first,
    endpoint_change_is_stored,
    concurrent_changes_are_both_kept,
    concurrent_change_does_not_undo_deletion,
    repeated_event_creates_one_message,
    subscribers_are_organizations_with_evaluation_events,
    retraction_erases_and_blocks_messages_of_ticket,
    replay_concurrent_with_retraction_sends_nothing,
    maintenance_erases_messages_missed_by_retraction,
    newest_test_messages_of_an_endpoint_are_kept,
    deleted_endpoint_is_hidden_then_pruned,
    expired_messages_are_pruned,
    rotation_keeps_previous_secret_until_expiry,
    resealing_skips_secrets_changed_meanwhile,
} }

async fn endpoint_is_visible_to_its_organization_only(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    assert_eq!(fixture.find(endpoint.id).await?, endpoint);
    let foreign = EndpointReference { organization_id: new_id(), id: endpoint.id };
    assert_eq!(fixture.store.find(foreign).await?, None);
    assert!(!fixture.store.delete(foreign, NOW).await?);
    let change = WebhookChange { enabled: Some(false), ..WebhookChange::default() };
    assert_eq!(fixture.store.change(foreign, change, NOW).await?, None);
    let sealed = endpoint.secrets.current.clone();
    assert!(!fixture.store.rotate(foreign, sealed, later(1)).await?);
    assert_eq!(fixture.find(endpoint.id).await?, endpoint);
    Ok(())
}

async fn endpoint_limit_holds_under_concurrency(fixture: Fixture) -> Result<()> {
    let endpoints: Vec<_> =
        (0..12).map(|_| fixture.endpoint(&[WebhookEvent::ExportFailed])).collect::<Result<_>>()?;
    let creations = endpoints
        .into_iter()
        .map(|endpoint| fixture.store.create(Creation { endpoint, record: None, limit: ENDPOINT_LIMIT }));
    let created: Vec<_> =
        futures_util::future::join_all(creations).await.into_iter().collect::<Result<_, _>>()?;
    let count = created.iter().filter(|created| **created == CreateOutcome::Created).count();
    assert_eq!(count, ENDPOINT_LIMIT as usize);
    Ok(())
}

async fn endpoints_are_listed_newest_first(fixture: Fixture) -> Result<()> {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(fixture.create_endpoint().await?.id);
    }
    // All have the same creation time: they are ordered by id.
    ids.sort();
    ids.reverse();
    let first = fixture.store.list_endpoints(fixture.organization_id, None, 2).await?;
    let last = first.last().unwrap();
    let after = Position { created_at: last.created_at, id: last.id.as_uuid() };
    let second = fixture.store.list_endpoints(fixture.organization_id, Some(after), 9).await?;
    let found: Vec<_> = first.iter().chain(&second).map(|endpoint| endpoint.id).collect();
    assert_eq!(found, ids);
    Ok(())
}

async fn endpoint_change_is_stored(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    let change = WebhookChange {
        url: Some("https://other.example.com/".to_owned()),
        events: Some([WebhookEvent::ExportCompleted].into()),
        ..WebhookChange::default()
    };
    let changed = fixture.store.change(endpoint.reference(), change, later(1)).await?.unwrap();
    assert_eq!(changed.url, "https://other.example.com/");
    assert_eq!((&changed.description, changed.updated_at), (&endpoint.description, later(1)));
    assert_eq!(fixture.find(endpoint.id).await?, changed);
    assert!(fixture.store.evaluation_subscribers(None, 10).await?.is_empty());
    let change = WebhookChange { description: Some(String::new()), ..WebhookChange::default() };
    let changed = fixture.store.change(endpoint.reference(), change, later(2)).await?.unwrap();
    assert_eq!(changed.description, None, "an empty description removes it");
    assert_eq!(fixture.find(endpoint.id).await?, changed);
    Ok(())
}

async fn concurrent_changes_are_both_kept(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    let change = |change| fixture.store.change(endpoint.reference(), change, NOW);
    for round in 0..ROUNDS {
        let (url, description) = (format!("https://{round}.example.com/"), format!("Round {round}"));
        let (one, other) = futures_util::future::join(
            change(WebhookChange { url: Some(url.clone()), ..WebhookChange::default() }),
            change(WebhookChange { description: Some(description.clone()), ..WebhookChange::default() }),
        )
        .await;
        assert!(one?.is_some() && other?.is_some());
        let found = fixture.find(endpoint.id).await?;
        assert_eq!((found.url, found.description), (url, Some(description)));
    }
    Ok(())
}

async fn concurrent_change_does_not_undo_deletion(fixture: Fixture) -> Result<()> {
    for _ in 0..ROUNDS {
        let endpoint = fixture.create_endpoint().await?;
        let change = WebhookChange { enabled: Some(true), ..WebhookChange::default() };
        let (deleted, changed) = futures_util::future::join(
            fixture.store.delete(endpoint.reference(), NOW),
            fixture.store.change(endpoint.reference(), change, NOW),
        )
        .await;
        assert!(deleted? && changed.is_ok());
        let disable_enabled = "UPDATE endpoints SET enabled = FALSE WHERE enabled";
        assert_eq!(fixture.execute(disable_enabled).await?, 0);
    }
    Ok(())
}

async fn repeated_event_creates_one_message(fixture: Fixture) -> Result<()> {
    let (one, other) = (fixture.create_endpoint().await?, fixture.create_endpoint().await?);
    let event = fixture.announced(new_id());
    fixture.store.enqueue(vec![event.clone(), event.clone()], NOW, NOW).await?;
    fixture.store.enqueue(vec![event], NOW, NOW).await?;
    for endpoint in [one, other] {
        assert_eq!(fixture.log(endpoint.id, None).await?.len(), 1);
        assert_eq!(fixture.log(endpoint.id, Some(DeliveryStatus::Failed)).await?.len(), 0);
    }
    Ok(())
}

async fn subscribers_are_organizations_with_evaluation_events(mut fixture: Fixture) -> Result<()> {
    let mut evaluation_subscribers = Vec::new();
    for _ in 0..3 {
        fixture.organization_id = new_id();
        evaluation_subscribers.push(fixture.organization_id);
        fixture.create_endpoint().await?;
        fixture.create_endpoint().await?;
    }
    fixture.organization_id = new_id();
    let endpoint = fixture.endpoint(&[WebhookEvent::ExportFailed])?;
    fixture.store.create(Creation { endpoint, record: None, limit: ENDPOINT_LIMIT }).await?;
    evaluation_subscribers.sort();
    assert_eq!(fixture.store.evaluation_subscribers(None, 10).await?, evaluation_subscribers);
    assert_eq!(fixture.store.evaluation_subscribers(None, 2).await?, evaluation_subscribers[..2]);
    assert_eq!(
        fixture.store.evaluation_subscribers(Some(evaluation_subscribers[1]), 10).await?,
        evaluation_subscribers[2..]
    );
    Ok(())
}

async fn retraction_erases_and_blocks_messages_of_ticket(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    let (delivered, pending, other): (TicketId, TicketId, TicketId) = (new_id(), new_id(), new_id());
    fixture.store.enqueue(vec![fixture.announced(delivered)], NOW, NOW).await?;
    let claim = fixture.claim_one(NOW).await?;
    fixture.record_attempt(claim.clone(), 204, RetryDecision::Delivered, NOW).await?;
    fixture.store.enqueue(vec![fixture.announced(pending), fixture.announced(other)], NOW, NOW).await?;
    let foreign = EvaluationRetracted { organization_id: new_id(), ticket_id: other, deleted_at: NOW };
    let foreign = ReceivedEvent::Retraction(new_id(), foreign);
    let retracted = vec![fixture.retracted(delivered), fixture.retracted(pending), foreign];
    fixture.store.enqueue(retracted, NOW, NOW).await?;
    // An event that arrives after the deletion makes no message.
    fixture.store.enqueue(vec![fixture.announced(delivered)], NOW, NOW).await?;
    let found = fixture.store.find_delivery(endpoint.reference(), claim.id).await?.unwrap();
    assert_eq!((found.payload, found.delivery.status), (None, DeliveryStatus::Delivered));
    let replay = fixture.store.replay(endpoint.reference(), claim.id, NOW);
    assert_eq!(replay.await?, ReplayOutcome::Erased);
    let claims = fixture.claim_all(NOW).await?;
    assert!(claims.len() == 1 && claims[0].payload.contains(&other.to_string()), "{claims:?}");
    assert_eq!(fixture.log(endpoint.id, None).await?.len(), 3);
    Ok(())
}

async fn replay_concurrent_with_retraction_sends_nothing(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    for _ in 0..ROUNDS {
        let ticket = new_id();
        fixture.store.enqueue(vec![fixture.announced(ticket)], NOW, NOW).await?;
        let claim = fixture.claim_one(NOW).await?;
        fixture.record_attempt(claim.clone(), 204, RetryDecision::Delivered, NOW).await?;
        let (replayed, retracted) = futures_util::future::join(
            fixture.store.replay(endpoint.reference(), claim.id, NOW),
            fixture.store.enqueue(vec![fixture.retracted(ticket)], NOW, NOW),
        )
        .await;
        retracted?;
        assert!(matches!(replayed?, ReplayOutcome::Queued | ReplayOutcome::Erased));
        assert_eq!(fixture.log(endpoint.id, Some(DeliveryStatus::Pending)).await?, []);
        assert_eq!(fixture.claim_all(NOW).await?, []);
    }
    Ok(())
}

async fn maintenance_erases_messages_missed_by_retraction(fixture: Fixture) -> Result<()> {
    let (endpoint, ticket) = (fixture.create_endpoint().await?, new_id());
    fixture.store.enqueue(vec![fixture.retracted(ticket)], NOW, NOW).await?;
    let (delivered, pending) = (new_id(), new_id());
    for (id, at) in [(delivered, NOW), (pending, later(1))] {
        let payload = "{}".to_owned();
        let message = Message { event: WebhookEvent::EvaluationCompleted, ticket_id: Some(ticket), payload };
        fixture.store.add_message(&endpoint, id, message, at).await?;
    }
    let claim = fixture.claim_one(NOW).await?;
    assert!(fixture.record_attempt(claim, 204, RetryDecision::Delivered, NOW).await?);
    assert_eq!(fixture.store.prune(later(-DAY), later(1)).await?, 2);
    for (id, status) in [(delivered, DeliveryStatus::Delivered), (pending, DeliveryStatus::Failed)] {
        let found = fixture.store.find_delivery(endpoint.reference(), id).await?.unwrap();
        assert_eq!((found.payload, found.delivery.status), (None, status));
    }
    Ok(())
}

async fn newest_test_messages_of_an_endpoint_are_kept(fixture: Fixture) -> Result<()> {
    let (endpoint, other) = (fixture.create_endpoint().await?, fixture.create_endpoint().await?);
    fixture.announce(1).await?;
    for second in 0..5 + i64::try_from(MAX_STORED_TESTS)? {
        let at = later(second);
        fixture.store.add_message(&endpoint, new_id(), test_message(endpoint.id, at)?, at).await?;
    }
    fixture.store.add_message(&other, new_id(), test_message(other.id, NOW)?, NOW).await?;
    let page = LogPage { endpoint: endpoint.reference(), status: None, after: None, limit: 1_000 };
    let kept = fixture.store.list_deliveries(page).await?;
    let (tests, others): (Vec<_>, Vec<_>) =
        kept.iter().partition(|delivery| delivery.event == WebhookEvent::Test);
    assert_eq!((tests.len(), others.len()), (MAX_STORED_TESTS, 1));
    assert_eq!(tests.last().unwrap().created_at, later(5), "the oldest five were removed");
    assert_eq!(fixture.log(other.id, None).await?.len(), 2);
    Ok(())
}

async fn deleted_endpoint_is_hidden_then_pruned(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(3).await?;
    assert!(fixture.store.delete(endpoint.reference(), NOW).await?);
    assert!(!fixture.store.delete(endpoint.reference(), NOW).await?);
    assert_eq!(fixture.store.find(endpoint.reference()).await?, None);
    assert!(fixture.claim_all(NOW).await?.is_empty());
    assert!(fixture.store.list_endpoints(fixture.organization_id, None, 9).await?.is_empty());
    assert!(fixture.store.prune(later(-DAY), NOW).await? >= 4);
    assert_eq!(fixture.log(endpoint.id, None).await?.len(), 0);
    assert_eq!(fixture.store.prune(later(-DAY), NOW).await?, 0);
    Ok(())
}

async fn expired_messages_are_pruned(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_with_messages(2).await?;
    let claim = fixture.claim_one(NOW).await?;
    fixture.record_attempt(claim, 204, RetryDecision::Delivered, NOW).await?;
    assert_eq!(fixture.store.prune(NOW, later(1)).await?, 0);
    assert_eq!(fixture.store.prune(later(1), later(1)).await?, 2);
    assert_eq!(fixture.log(endpoint.id, None).await?.len(), 0);
    Ok(())
}

async fn rotation_keeps_previous_secret_until_expiry(fixture: Fixture) -> Result<()> {
    let endpoint = fixture.create_endpoint().await?;
    let new = Secret::from([8; SECRET_BYTES]).seal(&fixture.keys, endpoint.id)?;
    assert!(fixture.store.rotate(endpoint.reference(), new.clone(), later(60)).await?);
    let secrets = fixture.find(endpoint.id).await?.secrets;
    let previous = Some((endpoint.secrets.current.clone(), later(60)));
    assert_eq!(secrets, SealedSecrets { current: new.clone(), previous });
    fixture.store.prune(later(-DAY), later(59)).await?;
    assert!(fixture.find(endpoint.id).await?.secrets.previous.is_some());
    fixture.store.prune(later(-DAY), later(60)).await?;
    assert_eq!(fixture.find(endpoint.id).await?.secrets, SealedSecrets { current: new, previous: None });
    Ok(())
}

async fn resealing_skips_secrets_changed_meanwhile(fixture: Fixture) -> Result<()> {
    let (one, other) = (fixture.create_endpoint().await?, fixture.create_endpoint().await?);
    let keys = "k2:fedcba9876543210fedcba9876543210,k1:0123456789abcdef0123456789abcdef";
    let keys = KeyRing::parse(&keys.to_owned().into())?;
    let mut all = fixture.store.all_secrets(None, 1).await?;
    all.extend(fixture.store.all_secrets(Some(all[0].0), 9).await?);
    assert_eq!(all.len(), 2);
    let rotated = Secret::from([8; SECRET_BYTES]).seal(&keys, other.id)?;
    fixture.store.rotate(other.reference(), rotated.clone(), later(60)).await?;
    for (id, before) in all {
        let current = before.current.open(&keys, id)?.seal(&keys, id)?;
        fixture.store.reseal(id, before, SealedSecrets { current, previous: None }).await?;
    }
    let resealed = fixture.find(one.id).await?.secrets.current;
    assert!(resealed.uses_first_key(&keys) && resealed != one.secrets.current);
    assert_eq!(resealed.open(&keys, one.id)?, one.secrets.current.open(&keys, one.id)?);
    assert_eq!(fixture.find(other.id).await?.secrets.current, rotated);
    Ok(())
}
