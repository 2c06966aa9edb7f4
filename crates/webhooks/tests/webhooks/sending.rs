//! Taking messages to be sent, and what became of them.

use std::collections::HashSet;

use anyhow::Result;
use assay_contracts::webhook::{DeliveryStatus, DisabledReason, WebhookChange};
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;
use assay_webhooks::domain::schedule::Verdict;
use assay_webhooks::store::Replayed;

use crate::stage::{NOW, Stage, later};

on_both_databases! { Stage {
    a_message_is_held_by_one_until_its_hold_ends,
    no_two_claims_at_once_get_the_same_message,
    an_endpoint_with_many_messages_leaves_room_for_the_others,
    an_attempt_is_recorded_once_by_the_one_who_holds,
    a_failed_message_is_due_again_later,
    what_is_handed_back_is_due_at_once,
    a_disabled_endpoint_is_sent_nothing_until_it_is_enabled,
    an_endpoint_that_fails_for_days_is_disabled,
    an_endpoint_that_answers_410_is_disabled,
    a_replay_begins_the_schedule_anew_under_the_same_id,
    a_message_without_words_is_not_sent,
    a_late_answer_of_the_address_before_disables_nothing,
    messages_given_up_at_the_address_before_count_no_more,
    an_event_of_a_later_release_stops_nobodys_messages,
} }

async fn a_message_is_held_by_one_until_its_hold_ends(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(1).await?;
    assert!(stage.store.claim(stage.terms(later(-1), 9, 9)).await?.is_empty(), "it is not due yet");
    let claim = stage.claim_one(NOW).await?;
    assert_eq!((claim.endpoint_id, claim.url.as_str()), (endpoint.id, "https://hooks.example.com/"));
    assert!(claim.payload.contains("evaluation.completed") && claim.number_in_round() == 1);
    assert!(stage.store.claim(stage.terms(later(29), 9, 9)).await?.is_empty());
    let again = stage.claim_one(later(30)).await?;
    assert_eq!(again.id, claim.id);
    assert!(!stage.settle(claim, 204, Verdict::Delivered, later(31)).await?, "the hold was lost");
    assert!(stage.settle(again, 204, Verdict::Delivered, later(31)).await?);
    assert!(stage.store.claim(stage.terms(later(99_999), 9, 9)).await?.is_empty());
    Ok(())
}

async fn no_two_claims_at_once_get_the_same_message(stage: Stage) -> Result<()> {
    stage.create().await?;
    stage.announce(40).await?;
    let claims = (0..8).map(|_| stage.store.claim(stage.terms(NOW, 10, 10)));
    let claims: Vec<_> =
        futures_util::future::join_all(claims).await.into_iter().collect::<Result<_, _>>()?;
    let ids: Vec<_> = claims.iter().flatten().map(|claim| claim.id).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "a message was given out twice");
    assert_eq!(ids.len() + stage.store.claim(stage.terms(NOW, 99, 99)).await?.len(), 40);
    Ok(())
}

async fn an_endpoint_with_many_messages_leaves_room_for_the_others(stage: Stage) -> Result<()> {
    let slow = stage.create().await?;
    stage.announce(50).await?;
    let quick = stage.create().await?;
    stage.announce(1).await?;
    let claims = stage.store.claim(stage.terms(NOW, 8, 4)).await?;
    let of = |id| claims.iter().filter(|claim| claim.endpoint_id == id).count();
    assert_eq!((of(slow.id), of(quick.id)), (4, 1));
    let busy = assay_webhooks::store::ClaimTerms { busy: vec![slow.id], ..stage.terms(NOW, 8, 4) };
    assert!(stage.store.claim(busy).await?.is_empty(), "a busy endpoint was given more");
    Ok(())
}

async fn an_attempt_is_recorded_once_by_the_one_who_holds(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(1).await?;
    let claim = stage.claim_one(NOW).await?;
    assert!(stage.settle(claim.clone(), 204, Verdict::Delivered, later(1)).await?);
    assert!(!stage.settle(claim.clone(), 500, Verdict::GivenUp, later(2)).await?);
    let found = stage.store.find_delivery(stage.organization_id, endpoint.id, claim.id).await?.unwrap();
    assert_eq!((found.delivery.status, found.delivery.attempts), (DeliveryStatus::Delivered, 1));
    assert_eq!(found.attempts.len(), 1);
    let attempt = &found.attempts[0];
    assert_eq!((attempt.number, attempt.status_code, attempt.duration_ms), (1, Some(204), 12));
    assert!(stage.store.find_delivery(new_id(), endpoint.id, claim.id).await?.is_none());
    assert!(stage.store.find_delivery(stage.organization_id, new_id(), claim.id).await?.is_none());
    Ok(())
}

async fn a_failed_message_is_due_again_later(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(1).await?;
    let claim = stage.claim_one(NOW).await?;
    assert!(stage.settle(claim.clone(), 500, Verdict::RetryAt(later(5)), NOW).await?);
    assert_eq!(stage.find(endpoint.id).await?.failing_since, Some(NOW));
    assert!(stage.store.claim(stage.terms(later(4), 9, 9)).await?.is_empty());
    let again = stage.claim_one(later(5)).await?;
    assert_eq!((again.id, again.number_in_round()), (claim.id, 2));
    stage.settle(again, 204, Verdict::Delivered, later(6)).await?;
    assert_eq!(stage.find(endpoint.id).await?.failing_since, None);
    Ok(())
}

async fn what_is_handed_back_is_due_at_once(stage: Stage) -> Result<()> {
    stage.create().await?;
    stage.announce(3).await?;
    let claims = stage.store.claim(stage.terms(NOW, 3, 3)).await?;
    stage.store.hand_back(claims[..2].to_vec(), NOW).await?;
    assert_eq!(stage.store.claim(stage.terms(NOW, 9, 9)).await?.len(), 2);
    Ok(())
}

async fn a_disabled_endpoint_is_sent_nothing_until_it_is_enabled(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(2).await?;
    let set = |enabled| WebhookChange { enabled: Some(enabled), ..WebhookChange::default() };
    stage.store.change(stage.organization_id, endpoint.id, set(false), NOW).await?;
    stage.announce(1).await?;
    assert!(stage.store.claim(stage.terms(NOW, 9, 9)).await?.is_empty());
    stage.store.change(stage.organization_id, endpoint.id, set(true), NOW).await?;
    assert_eq!(stage.store.claim(stage.terms(NOW, 9, 9)).await?.len(), 2, "those from before");
    Ok(())
}

async fn an_endpoint_that_fails_for_days_is_disabled(stage: Stage) -> Result<()> {
    let day = 24 * 60 * 60;
    let endpoint = stage.create().await?;
    stage.announce(6).await?;
    let first = stage.claim_one(NOW).await?;
    stage.settle(first, 500, Verdict::GivenUp, NOW).await?;
    for _ in 0..3 {
        let claim = stage.claim_one(later(6 * day)).await?;
        stage.settle(claim, 500, Verdict::GivenUp, later(6 * day)).await?;
    }
    assert!(stage.find(endpoint.id).await?.enabled, "four messages are too few");
    let claim = stage.claim_one(later(6 * day)).await?;
    stage.settle(claim, 500, Verdict::GivenUp, later(6 * day)).await?;
    let found = stage.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.disabled_reason), (false, Some(DisabledReason::Failing)));
    Ok(())
}

async fn an_endpoint_that_answers_410_is_disabled(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(1).await?;
    let claim = stage.claim_one(NOW).await?;
    stage.settle(claim.clone(), 410, Verdict::Gone, NOW).await?;
    let found = stage.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.disabled_reason), (false, Some(DisabledReason::Gone)));
    assert_eq!(stage.delivery(endpoint.id, claim.id).await?.status, DeliveryStatus::Failed);
    assert!(stage.store.interested(None, 10).await?.is_empty());
    Ok(())
}

async fn a_replay_begins_the_schedule_anew_under_the_same_id(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(1).await?;
    let claim = stage.claim_one(NOW).await?;
    stage.settle(claim.clone(), 500, Verdict::GivenUp, NOW).await?;
    let replay = |id| stage.store.replay(stage.organization_id, endpoint.id, id, later(60));
    assert_eq!(replay(new_id()).await?, Replayed::NotFound);
    assert_eq!(replay(claim.id).await?, Replayed::Queued);
    let again = stage.claim_one(later(60)).await?;
    assert_eq!((again.id, again.attempts, again.number_in_round()), (claim.id, 1, 1));
    // Who is sending it is not disturbed.
    assert_eq!(replay(claim.id).await?, Replayed::Queued);
    assert!(stage.settle(again, 204, Verdict::Delivered, later(61)).await?);
    Ok(())
}

async fn a_message_without_words_is_not_sent(stage: Stage) -> Result<()> {
    stage.create().await?;
    stage.announce(2).await?;
    assert_eq!(stage.execute("UPDATE deliveries SET payload = NULL").await?, 2);
    let claims = stage.store.claim(stage.terms(NOW, 9, 9)).await?;
    assert!(claims.is_empty(), "{claims:?}");
    Ok(())
}

async fn a_late_answer_of_the_address_before_disables_nothing(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    stage.announce(3).await?;
    let [gone, failing, delivered] = [(); 3].map(|()| stage.claim_one(NOW));
    let (gone, failing, delivered) = (gone.await?, failing.await?, delivered.await?);
    let elsewhere =
        WebhookChange { url: Some("https://new.example.com/".into()), ..WebhookChange::default() };
    stage.store.change(stage.organization_id, endpoint.id, elsewhere, NOW).await?;
    assert!(stage.settle(gone, 410, Verdict::Gone, later(1)).await?);
    assert!(stage.settle(failing, 500, Verdict::RetryAt(later(9)), later(1)).await?);
    let found = stage.find(endpoint.id).await?;
    assert_eq!((found.enabled, found.disabled_reason, found.failing_since), (true, None, None));
    // Nor does it say that the new address works.
    let other = stage.claim_one(later(9)).await?;
    stage.settle(other, 500, Verdict::RetryAt(later(20)), later(9)).await?;
    assert!(stage.settle(delivered, 204, Verdict::Delivered, later(10)).await?);
    assert_eq!(stage.find(endpoint.id).await?.failing_since, Some(later(9)));
    Ok(())
}

async fn messages_given_up_at_the_address_before_count_no_more(stage: Stage) -> Result<()> {
    let day = 24 * 60 * 60;
    let endpoint = stage.create().await?;
    stage.announce(6).await?;
    let first = stage.claim_one(NOW).await?;
    stage.settle(first, 500, Verdict::GivenUp, NOW).await?;
    let late = stage.store.claim(stage.terms(later(6 * day), 9, 9)).await?;
    assert_eq!(late.len(), 5);
    let elsewhere =
        WebhookChange { url: Some("https://new.example.com/".into()), ..WebhookChange::default() };
    stage.store.change(stage.organization_id, endpoint.id, elsewhere, later(6 * day)).await?;
    for claim in late {
        assert!(stage.settle(claim, 500, Verdict::GivenUp, later(6 * day)).await?);
    }
    assert!(stage.find(endpoint.id).await?.enabled);
    Ok(())
}

async fn an_event_of_a_later_release_stops_nobodys_messages(stage: Stage) -> Result<()> {
    let endpoint = stage.create().await?;
    let changed =
        stage.execute("UPDATE endpoints SET events = 'evaluation.completed ticket.reopened'").await?;
    assert_eq!(changed, 1);
    let other = stage.create().await?;
    stage.announce(1).await?;
    let claims = stage.store.claim(stage.terms(NOW, 9, 9)).await?;
    let told: HashSet<_> = claims.iter().map(|claim| claim.endpoint_id).collect();
    assert_eq!(told, HashSet::from([endpoint.id, other.id]));
    // What this release does not know is not taken away by a change of something else.
    let change = WebhookChange { description: Some("Support".into()), ..WebhookChange::default() };
    stage.store.change(stage.organization_id, endpoint.id, change, NOW).await?;
    let kept = "UPDATE endpoints SET updated_at = 0 WHERE events LIKE '%ticket.reopened'";
    assert_eq!(stage.execute(kept).await?, 1);
    Ok(())
}
