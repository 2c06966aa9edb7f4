//! Endpoints, the messages that are made for them, and what goes.

use anyhow::Result;
use assay_contracts::ids::TicketId;
use assay_contracts::webhook::{DeliveryStatus, WebhookChange, WebhookEvent};
use assay_platform::auth::SigningKeys;
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;
use assay_webhooks::domain::message::Message;
use assay_webhooks::domain::position::Position;
use assay_webhooks::domain::schedule::Verdict;
use assay_webhooks::domain::secret::{SECRET_BYTES, SealedSecrets, Secret};
use assay_webhooks::store::{Created, Creation, Received, Replayed};

use crate::stage::{LIMIT, NOW, Stage, later};

const DAY: i64 = 24 * 60 * 60;

/// How often two things are done at the same moment, so that they meet.
const ROUNDS: usize = 40;

on_both_databases! { Stage {
    an_endpoint_is_read_as_it_was_made_by_its_organization_alone,
    an_organization_has_so_many_endpoints_and_no_more,
    pages_go_from_the_newest_to_the_oldest,
    a_change_is_kept,
    of_two_changes_at_the_same_time_none_is_lost,
    a_change_does_not_bring_back_what_is_being_deleted,
    an_event_makes_one_message_however_often_it_comes,
    only_those_who_want_evaluations_are_interested,
    a_retracted_ticket_is_told_nothing_and_what_was_told_is_erased,
    a_replay_while_its_ticket_is_retracted_sends_nothing,
    what_slipped_by_a_retraction_is_erased_and_what_was_delivered_stays_so,
    a_deleted_endpoint_is_gone_at_once_and_its_messages_follow,
    old_messages_are_removed,
    a_rotation_keeps_the_secret_before_until_its_time_is_over,
    secrets_are_encrypted_anew_unless_they_changed_meanwhile,
} }

async fn an_endpoint_is_read_as_it_was_made_by_its_organization_alone(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    assert_eq!(stage.find(endpoint.id).await?, endpoint);
    assert_eq!(stage.store.find(new_id(), endpoint.id).await?, None);
    assert!(!stage.store.delete(new_id(), endpoint.id, NOW).await?);
    let change = WebhookChange { enabled: Some(false), ..WebhookChange::default() };
    assert_eq!(stage.store.change(new_id(), endpoint.id, change, NOW).await?, None);
    let sealed = endpoint.secrets.current.clone();
    assert!(!stage.store.rotate(new_id(), endpoint.id, sealed, later(1)).await?);
    assert_eq!(stage.find(endpoint.id).await?, endpoint);
    Ok(())
}

async fn an_organization_has_so_many_endpoints_and_no_more(stage: Stage) -> Result<()> {
    let endpoints: Vec<_> =
        (0..12).map(|_| stage.endpoint(&[WebhookEvent::ExportFailed])).collect::<Result<_>>()?;
    let creations = endpoints
        .into_iter()
        .map(|endpoint| stage.store.create(Creation { endpoint, record: None, limit: LIMIT }));
    let created: Vec<_> =
        futures_util::future::join_all(creations).await.into_iter().collect::<Result<_, _>>()?;
    assert_eq!(created.iter().filter(|created| **created == Created::New).count(), LIMIT as usize);
    Ok(())
}

async fn pages_go_from_the_newest_to_the_oldest(stage: Stage) -> Result<()> {
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(stage.create().await?.id);
    }
    // All of one moment: their ids decide.
    ids.sort();
    ids.reverse();
    let first = stage.store.page(stage.organization_id, None, 2).await?;
    let last = first.last().unwrap();
    let after = Position { created_at: last.created_at, id: last.id.as_uuid() };
    let second = stage.store.page(stage.organization_id, Some(after), 9).await?;
    let found: Vec<_> = first.iter().chain(&second).map(|endpoint| endpoint.id).collect();
    assert_eq!(found, ids);
    Ok(())
}

async fn a_change_is_kept(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    let change = WebhookChange {
        url: Some("https://other.example.com/".to_owned()),
        events: Some([WebhookEvent::ExportCompleted].into()),
        ..WebhookChange::default()
    };
    let changed = stage.store.change(stage.organization_id, endpoint.id, change, later(1)).await?.unwrap();
    assert_eq!(changed.url, "https://other.example.com/");
    assert_eq!((&changed.description, changed.updated_at), (&endpoint.description, later(1)));
    assert_eq!(stage.find(endpoint.id).await?, changed);
    assert!(stage.store.interested(None, 10).await?.is_empty());
    Ok(())
}

async fn of_two_changes_at_the_same_time_none_is_lost(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    let change = |change| stage.store.change(stage.organization_id, endpoint.id, change, NOW);
    for round in 0..ROUNDS {
        let (url, description) = (format!("https://{round}.example.com/"), format!("Round {round}"));
        let (one, other) = futures_util::future::join(
            change(WebhookChange { url: Some(url.clone()), ..WebhookChange::default() }),
            change(WebhookChange { description: Some(description.clone()), ..WebhookChange::default() }),
        )
        .await;
        assert!(one?.is_some() && other?.is_some());
        let found = stage.find(endpoint.id).await?;
        assert_eq!((found.url, found.description), (url, Some(description)));
    }
    Ok(())
}

async fn a_change_does_not_bring_back_what_is_being_deleted(stage: Stage) -> Result<()> {
    for _ in 0..ROUNDS {
        let endpoint = stage.create().await?;
        let change = WebhookChange { enabled: Some(true), ..WebhookChange::default() };
        let (deleted, changed) = futures_util::future::join(
            stage.store.delete(stage.organization_id, endpoint.id, NOW),
            stage.store.change(stage.organization_id, endpoint.id, change, NOW),
        )
        .await;
        assert!(deleted? && changed.is_ok());
        let brought_back = "UPDATE endpoints SET enabled = FALSE WHERE enabled";
        assert_eq!(stage.execute(brought_back).await?, 0);
    }
    Ok(())
}

async fn an_event_makes_one_message_however_often_it_comes(stage: Stage) -> Result<()> {
    let (one, other) = (stage.create().await?, stage.create().await?);
    let event = stage.announced(new_id());
    stage.store.take_in(vec![event.clone(), event.clone()], NOW, NOW).await?;
    stage.store.take_in(vec![event], NOW, NOW).await?;
    for endpoint in [one, other] {
        assert_eq!(stage.log(endpoint.id, None).await?.len(), 1);
        assert_eq!(stage.log(endpoint.id, Some(DeliveryStatus::Failed)).await?.len(), 0);
    }
    Ok(())
}

async fn only_those_who_want_evaluations_are_interested(mut stage: Stage) -> Result<()> {
    let mut interested = Vec::new();
    for _ in 0..3 {
        stage.organization_id = new_id();
        interested.push(stage.organization_id);
        stage.create().await?;
        stage.create().await?;
    }
    stage.organization_id = new_id();
    let endpoint = stage.endpoint(&[WebhookEvent::ExportFailed])?;
    stage.store.create(Creation { endpoint, record: None, limit: LIMIT }).await?;
    interested.sort();
    assert_eq!(stage.store.interested(None, 10).await?, interested);
    assert_eq!(stage.store.interested(None, 2).await?, interested[..2]);
    assert_eq!(stage.store.interested(Some(interested[1]), 10).await?, interested[2..]);
    Ok(())
}

async fn a_retracted_ticket_is_told_nothing_and_what_was_told_is_erased(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    let (told, waiting, other): (TicketId, TicketId, TicketId) = (new_id(), new_id(), new_id());
    stage.store.take_in(vec![stage.announced(told)], NOW, NOW).await?;
    let claim = stage.claim_one(NOW).await?;
    stage.settle(claim.clone(), 204, Verdict::Delivered, NOW).await?;
    stage.store.take_in(vec![stage.announced(waiting), stage.announced(other)], NOW, NOW).await?;
    let retracted = |ticket| Received::Retracted(new_id(), ticket, NOW);
    stage.store.take_in(vec![retracted(told), retracted(waiting)], NOW, NOW).await?;
    // What comes after the deletion, too.
    stage.store.take_in(vec![stage.announced(told)], NOW, NOW).await?;
    let found = stage.store.find_delivery(stage.organization_id, endpoint.id, claim.id).await?.unwrap();
    assert_eq!((found.payload, found.delivery.status), (None, DeliveryStatus::Delivered));
    let replay = stage.store.replay(stage.organization_id, endpoint.id, claim.id, NOW);
    assert_eq!(replay.await?, Replayed::Erased);
    let claims = stage.store.claim(stage.terms(NOW, 9, 9)).await?;
    assert!(claims.len() == 1 && claims[0].payload.contains(&other.to_string()), "{claims:?}");
    assert_eq!(stage.log(endpoint.id, None).await?.len(), 3);
    Ok(())
}

async fn a_replay_while_its_ticket_is_retracted_sends_nothing(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    for _ in 0..ROUNDS {
        let ticket = new_id();
        stage.store.take_in(vec![stage.announced(ticket)], NOW, NOW).await?;
        let claim = stage.claim_one(NOW).await?;
        stage.settle(claim.clone(), 204, Verdict::Delivered, NOW).await?;
        let (replayed, retracted) = futures_util::future::join(
            stage.store.replay(stage.organization_id, endpoint.id, claim.id, NOW),
            stage.store.take_in(vec![Received::Retracted(new_id(), ticket, NOW)], NOW, NOW),
        )
        .await;
        retracted?;
        assert!(matches!(replayed?, Replayed::Queued | Replayed::Erased));
        assert_eq!(stage.log(endpoint.id, Some(DeliveryStatus::Pending)).await?, []);
        assert_eq!(stage.store.claim(stage.terms(NOW, 9, 9)).await?, []);
    }
    Ok(())
}

async fn what_slipped_by_a_retraction_is_erased_and_what_was_delivered_stays_so(stage: Stage) -> Result<()> {
    let (endpoint, ticket) = (stage.create().await?, new_id());
    stage.store.take_in(vec![Received::Retracted(new_id(), ticket, NOW)], NOW, NOW).await?;
    let (told, waiting) = (new_id(), new_id());
    for (id, at) in [(told, NOW), (waiting, later(1))] {
        let payload = "{}".to_owned();
        let message = Message { event: WebhookEvent::EvaluationCompleted, ticket_id: Some(ticket), payload };
        stage.store.add(&endpoint, id, message, at).await?;
    }
    let claim = stage.claim_one(NOW).await?;
    assert!(stage.settle(claim, 204, Verdict::Delivered, NOW).await?);
    assert_eq!(stage.store.prune(later(-DAY), later(1)).await?, 2);
    for (id, status) in [(told, DeliveryStatus::Delivered), (waiting, DeliveryStatus::Failed)] {
        let found = stage.store.find_delivery(stage.organization_id, endpoint.id, id).await?.unwrap();
        assert_eq!((found.payload, found.delivery.status), (None, status));
    }
    Ok(())
}

async fn a_deleted_endpoint_is_gone_at_once_and_its_messages_follow(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(3).await?;
    assert!(stage.store.delete(stage.organization_id, endpoint.id, NOW).await?);
    assert!(!stage.store.delete(stage.organization_id, endpoint.id, NOW).await?);
    assert_eq!(stage.store.find(stage.organization_id, endpoint.id).await?, None);
    assert!(stage.store.claim(stage.terms(NOW, 9, 9)).await?.is_empty());
    assert!(stage.store.page(stage.organization_id, None, 9).await?.is_empty());
    assert!(stage.store.prune(later(-DAY), NOW).await? >= 4);
    assert_eq!(stage.log(endpoint.id, None).await?.len(), 0);
    assert_eq!(stage.store.prune(later(-DAY), NOW).await?, 0);
    Ok(())
}

async fn old_messages_are_removed(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(2).await?;
    let claim = stage.claim_one(NOW).await?;
    stage.settle(claim, 204, Verdict::Delivered, NOW).await?;
    assert_eq!(stage.store.prune(NOW, later(1)).await?, 0);
    assert_eq!(stage.store.prune(later(1), later(1)).await?, 2);
    assert_eq!(stage.log(endpoint.id, None).await?.len(), 0);
    Ok(())
}

async fn a_rotation_keeps_the_secret_before_until_its_time_is_over(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    let new = Secret::from([8; SECRET_BYTES]).seal(&stage.keys, endpoint.id)?;
    assert!(stage.store.rotate(stage.organization_id, endpoint.id, new.clone(), later(60)).await?);
    let secrets = stage.find(endpoint.id).await?.secrets;
    let before = Some((endpoint.secrets.current.clone(), later(60)));
    assert_eq!(secrets, SealedSecrets { current: new.clone(), previous: before });
    stage.store.prune(later(-DAY), later(59)).await?;
    assert!(stage.find(endpoint.id).await?.secrets.previous.is_some());
    stage.store.prune(later(-DAY), later(60)).await?;
    assert_eq!(stage.find(endpoint.id).await?.secrets, SealedSecrets { current: new, previous: None });
    Ok(())
}

async fn secrets_are_encrypted_anew_unless_they_changed_meanwhile(stage: Stage) -> Result<()> {
    let (one, other) = (stage.create().await?, stage.create().await?);
    let keys = "k2:fedcba9876543210fedcba9876543210,k1:0123456789abcdef0123456789abcdef";
    let keys = SigningKeys::parse(&keys.to_owned().into())?;
    let mut all = stage.store.secrets(None, 1).await?;
    all.extend(stage.store.secrets(Some(all[0].0), 9).await?);
    assert_eq!(all.len(), 2);
    let rotated = Secret::from([8; SECRET_BYTES]).seal(&keys, other.id)?;
    stage.store.rotate(stage.organization_id, other.id, rotated.clone(), later(60)).await?;
    for (id, before) in all {
        let current = before.current.open(&keys, id)?.seal(&keys, id)?;
        stage.store.reseal(id, before, SealedSecrets { current, previous: None }).await?;
    }
    let anew = stage.find(one.id).await?.secrets.current;
    assert!(anew.is_current(&keys) && anew != one.secrets.current);
    assert_eq!(anew.open(&keys, one.id)?, one.secrets.current.open(&keys, one.id)?);
    assert_eq!(stage.find(other.id).await?.secrets.current, rotated);
    Ok(())
}
