//! Deletion of tickets, and expiry of transcripts.

use anyhow::{Context as _, Result};
use assay_contracts::event::{ConversationDeleted, ConversationsExpired, Event, Topic};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{Deletion, OrganizationRetention, TicketReference};
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::tenant::Scope;
use assay_contracts::time::DAY_MILLIS;
use assay_platform::auth::Audience;
use assay_platform::db::Database;
use assay_platform::runtime::{new_id, now};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use assay_testkit::{eventually, execute_on, on_both_databases, texts_on};

use crate::events::Received;
use crate::test_app::{TestApp, claims_for, conversation, conversation_of, message};
use crate::transcripts::{client, reference};

on_both_databases! { TestApp {
    deleted_ticket_is_not_found_and_publishes_one_event,
    concurrent_deletions_of_a_ticket_succeed_once,
    identity_stays_used_after_deletion,
    deletion_removes_only_names_from_that_ticket,
    transcripts_report_deleted_and_unreadable_tickets,
    damaged_transcript_can_be_deleted,
    expired_transcripts_are_removed_and_publish_events,
    ticket_with_expired_transcript_and_kept_evaluation_is_deletable,
    expired_tickets_are_removed_with_their_evaluations,
    unknown_retention_periods_remove_nothing,
    tombstones_expire_after_90_days,
} }

const TOPICS: &[Topic] = &[ConversationDeleted::TOPIC, ConversationsExpired::TOPIC];

pub async fn delete(app: &TestApp, organization: OrganizationId, id: &str) -> Result<u16> {
    let token = app.tokens.issue(Audience::Ingest, &claims_for(organization, Scope::Tickets), now())?;
    let url = format!("{}/internal/v1/tickets/{id}", app.address);
    Ok(app.http.delete(url).bearer_auth(token).send().await?.status().as_u16())
}

#[derive(Debug, PartialEq)]
enum TicketState {
    Stored,
    Deleted,
    Unknown,
}

async fn state_of(app: &TestApp, organization: OrganizationId, id: &str) -> Result<TicketState> {
    let path = format!("/internal/v1/tickets/{id}/deletion");
    let answer = app.get(&path, &claims_for(organization, Scope::Tickets)).await?.error_for_status()?;
    let deletion: Deletion = answer.json().await?;
    match (deletion.deleted_at, deletion.exists) {
        (None, true) => Ok(TicketState::Stored),
        (Some(_), false) => Ok(TicketState::Deleted),
        (None, false) => Ok(TicketState::Unknown),
        (Some(_), true) => anyhow::bail!("{id} is deleted and stored"),
    }
}

async fn deleted_ticket_is_not_found_and_publishes_one_event(mut app: TestApp) -> Result<()> {
    let received = Received::<ConversationDeleted>::listen(&mut app, TOPICS);
    let (gone, kept) = (app.import(&conversation("T-1")).await?, app.import(&conversation("T-2")).await?);
    assert_eq!(state_of(&app, app.organization, &gone).await?, TicketState::Stored);
    assert_eq!(delete(&app, app.organization, &gone).await?, 204);
    assert_eq!(app.ticket(&gone).await?.status(), 404);
    assert_eq!(app.ticket(&kept).await?.status(), 200);
    assert_eq!(state_of(&app, app.organization, &gone).await?, TicketState::Deleted);
    assert_eq!(state_of(&app, new_id(), &gone).await?, TicketState::Unknown);
    assert_eq!(delete(&app, app.organization, &gone).await?, 404);
    // Published after any event of the second deletion.
    assert_eq!(delete(&app, app.organization, &kept).await?, 204);
    eventually("the event", || async { Ok(received.all().len() >= 2) }).await?;
    let published: Vec<(OrganizationId, String)> = received
        .all()
        .iter()
        .map(|(event, _)| (event.organization_id, event.ticket_id.to_string()))
        .collect();
    assert_eq!(published, [(app.organization, gone), (app.organization, kept)]);
    Ok(())
}

async fn concurrent_deletions_of_a_ticket_succeed_once(mut app: TestApp) -> Result<()> {
    let received = Received::<ConversationDeleted>::listen(&mut app, TOPICS);
    for number in 0..5 {
        let id = app.import(&conversation(&format!("T-{number}"))).await?;
        let statuses = try_join_all((0..6).map(|_| delete(&app, app.organization, &id))).await?;
        assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [204, 404].contains(status)), "{statuses:?}");
    }
    eventually("the event", || async { Ok(received.all().len() == 5) }).await
}

async fn identity_stays_used_after_deletion(app: TestApp) -> Result<()> {
    let id = app.import(&conversation("T-1")).await?;
    assert_eq!(delete(&app, app.organization, &id).await?, 204);
    for _ in 0..2 {
        let refused = app.submit_with_key("again", &conversation("T-1")).await?;
        assert_eq!(refused.status(), 409);
        assert_eq!(refused.json::<Value>().await?["ticket_id"], id.as_str());
    }
    // Identities are isolated by organization.
    let foreign = app.submit_to(&app.address, new_id(), None, conversation("T-1").to_string()).await?;
    assert_eq!(foreign.status(), 202);
    Ok(())
}

async fn deletion_removes_only_names_from_that_ticket(app: TestApp) -> Result<()> {
    let contact = |id: &str, name: &str| json!({"type": "contact", "external_id": id, "name": name});
    let earlier = json!([message("1", 1_000, contact("a", "Ann")), message("2", 2_000, contact("b", "Bob"))]);
    let later =
        json!([message("1", 3_000, contact("b", "Robert")), message("2", 3_000, contact("c", "Cid"))]);
    let id = app.import(&conversation_of("T-1", earlier)).await?;
    app.import(&conversation_of("T-2", later)).await?;
    assert_eq!(delete(&app, app.organization, &id).await?, 204);
    let names = texts_on(&app.database, "SELECT name AS value FROM participants ORDER BY name").await?;
    assert_eq!(names, ["Cid", "Robert"]);
    Ok(())
}

async fn transcripts_report_deleted_and_unreadable_tickets(app: TestApp) -> Result<()> {
    let [gone, broken, good] = [
        app.import(&conversation("T-1")).await?,
        app.import(&conversation("T-2")).await?,
        app.import(&conversation("T-3")).await?,
    ];
    delete(&app, app.organization, &gone).await?;
    break_transcript(&app.database, &broken).await?;
    let foreign = TicketReference { organization_id: new_id(), ticket_id: gone.parse()? };
    let unknown = TicketReference { organization_id: app.organization, ticket_id: new_id() };
    let wanted =
        [foreign, unknown, reference(&app, &gone)?, reference(&app, &broken)?, reference(&app, &good)?];
    let answer = client(&app)?.read_transcripts(&wanted).await?;
    assert_eq!(answer.deleted, [reference(&app, &gone)?]);
    let found: Vec<String> = answer.transcripts.iter().map(|found| found.ticket.id.to_string()).collect();
    assert_eq!(found, [good]);
    let unreadable = answer.unreadable.first().context("nothing is unreadable")?;
    assert_eq!((answer.unreadable.len(), unreadable.ticket.id.to_string()), (1, broken));
    assert_eq!(unreadable.ticket.external_id, "T-2");
    Ok(())
}

async fn damaged_transcript_can_be_deleted(app: TestApp) -> Result<()> {
    let id = app.import(&conversation("T-1")).await?;
    break_transcript(&app.database, &id).await?;
    assert_eq!(delete(&app, app.organization, &id).await?, 204);
    assert_eq!(app.ticket(&id).await?.status(), 404);
    Ok(())
}

async fn break_transcript(database: &Database, id: &str) -> Result<()> {
    // A known format with an invalid checksum.
    let bytes = match database {
        Database::Postgres(_) => r"'\x0100000000'",
        Database::Sqlite(_) => "x'0100000000'",
    };
    execute_on(database, format!("UPDATE conversations SET packed = {bytes} WHERE id = '{id}'")).await?;
    Ok(())
}

/// Imports a ticket and ages it by `days`.
async fn imported_days_ago(app: &TestApp, days: i64) -> Result<String> {
    let at = now().plus_millis(-days * DAY_MILLIS);
    let contact =
        json!({"type": "contact", "external_id": format!("c-{days}"), "name": format!("Name {days}")});
    let body = conversation_of(&format!("{days} days"), json!([message("1", 1_000, contact)]));
    let id = app.import(&body).await?;
    // The smallest id of that time, with random low bits.
    let first = TicketId::min_at(at).as_uuid().as_u128();
    let old = Uuid::from_u128(first | (Uuid::new_v4().as_u128() >> 48)).to_string();
    let identity = format!("UPDATE identities SET ticket_id = '{old}' WHERE ticket_id = '{id}'");
    let millis = at.as_millis();
    let age = format!("UPDATE conversations SET id = '{old}', created_at = {millis} WHERE id = '{id}'");
    for statement in [identity, age] {
        execute_on(&app.database, statement).await?;
    }
    Ok(old)
}

fn retention(
    organization_id: OrganizationId,
    transcripts: RetentionPeriod,
    evaluations: RetentionPeriod,
) -> OrganizationRetention {
    OrganizationRetention { organization_id, transcripts, evaluations, files: None }
}

/// Transcripts for 30 days, evaluations for 60.
fn keep_for_30_and_60_days(app: &TestApp) {
    let [transcripts, evaluations] = [30, 60].map(RetentionPeriod::Days);
    app.registry.set_retention(Some(vec![retention(app.organization, transcripts, evaluations)]));
}

async fn expired_transcripts_are_removed_and_publish_events(mut app: TestApp) -> Result<()> {
    let received = Received::<ConversationsExpired>::listen(&mut app, TOPICS);
    let organization = app.organization;
    let young = imported_days_ago(&app, 29).await?;
    let old = imported_days_ago(&app, 31).await?;
    let with_expired_evaluation = imported_days_ago(&app, 61).await?;
    let nothing_to_remove = [
        retention(organization, RetentionPeriod::Forever, RetentionPeriod::Days(1)),
        retention(new_id(), RetentionPeriod::Days(1), RetentionPeriod::Days(1)),
    ];
    app.registry.set_retention(Some(nothing_to_remove.to_vec()));
    app.registry.wait_for_maintenance().await?;
    for id in [&young, &old, &with_expired_evaluation] {
        assert_eq!(app.ticket(id).await?.status(), 200);
    }
    keep_for_30_and_60_days(&app);
    for id in [&old, &with_expired_evaluation] {
        eventually("the removal", || async { Ok(app.ticket(id).await?.status() == 404) }).await?;
        let state = state_of(&app, organization, id).await?;
        assert_eq!(state, TicketState::Unknown, "expiry is not a deletion");
    }
    for (id, status, code) in [
        (&young, 200, Value::Null),
        (&old, 404, "transcript-expired".into()),
        (&with_expired_evaluation, 404, "ticket-not-found".into()),
    ] {
        let path = format!("/internal/v1/tickets/{id}/transcript");
        let answer = app.get(&path, &claims_for(organization, Scope::TranscriptsRead)).await?;
        assert_eq!(answer.status(), status, "{id}");
        assert_eq!(answer.json::<Value>().await?["code"], code, "{id}");
    }
    assert_eq!(app.ticket(&young).await?.status(), 200);
    eventually("the event", || async { Ok(!received.all().is_empty()) }).await?;
    app.registry.wait_for_maintenance().await?;
    let published: Vec<_> = received.all().into_iter().flat_map(|(event, _)| event.tickets).collect();
    let ids: Vec<String> = published.iter().map(|ticket| ticket.id.to_string()).collect();
    assert_eq!(ids, std::slice::from_ref(&old), "evaluations are kept for 60 days");
    assert_eq!((published[0].external_id.as_str(), published[0].subject.as_deref()), ("31 days", None));
    let names = texts_on(&app.database, "SELECT name AS value FROM participants").await?;
    assert_eq!(names, ["Name 29"]);
    let refused = app.submit(&conversation("31 days")).await?;
    assert_eq!(refused.status(), 409);
    assert_eq!(refused.json::<Value>().await?["ticket_id"], old.as_str());
    Ok(())
}

async fn ticket_with_expired_transcript_and_kept_evaluation_is_deletable(mut app: TestApp) -> Result<()> {
    let received = Received::<ConversationDeleted>::listen(&mut app, TOPICS);
    let organization = app.organization;
    let old = imported_days_ago(&app, 31).await?;
    let with_expired_evaluation = imported_days_ago(&app, 61).await?;
    keep_for_30_and_60_days(&app);
    for id in [&old, &with_expired_evaluation] {
        eventually("the removal", || async { Ok(app.ticket(id).await?.status() == 404) }).await?;
    }
    assert_eq!(delete(&app, new_id(), &old).await?, 404);
    assert_eq!(delete(&app, organization, &old).await?, 204);
    assert_eq!(delete(&app, organization, &old).await?, 404);
    let refused = delete(&app, organization, &with_expired_evaluation).await?;
    assert_eq!(refused, 404, "its evaluation has expired, too");
    assert_eq!(state_of(&app, organization, &old).await?, TicketState::Deleted);
    eventually("the event", || async { Ok(received.all().len() == 1) }).await
}

async fn expired_tickets_are_removed_with_their_evaluations(app: TestApp) -> Result<()> {
    let (keeps_transcripts, other): (OrganizationId, OrganizationId) = (new_id(), new_id());
    let mut rows = Vec::new();
    for (organization, days, count) in
        [(keeps_transcripts, 61, 1_500), (keeps_transcripts, 59, 1), (other, 61, 1)]
    {
        let first = TicketId::min_at(now().plus_millis(-days * DAY_MILLIS)).as_uuid().as_u128();
        rows.extend(
            (0..count).map(|number| format!("('{}', '{organization}')", Uuid::from_u128(first + number))),
        );
    }
    execute_on(&app.database, format!("INSERT INTO expired_tickets VALUES {}", rows.join(", "))).await?;
    app.registry.set_retention(Some(vec![
        retention(keeps_transcripts, RetentionPeriod::Forever, RetentionPeriod::Days(60)),
        retention(other, RetentionPeriod::Days(30), RetentionPeriod::Forever),
    ]));
    app.registry.wait_for_maintenance().await?;
    let owners = "SELECT CAST(organization_id AS text) AS value FROM expired_tickets ORDER BY ticket_id";
    let left = texts_on(&app.database, owners).await?;
    assert_eq!(left, [other.to_string(), keeps_transcripts.to_string()]);
    Ok(())
}

async fn unknown_retention_periods_remove_nothing(app: TestApp) -> Result<()> {
    let old = imported_days_ago(&app, 400).await?;
    app.registry.set_retention(None);
    app.registry.wait_for_maintenance().await?;
    assert_eq!(app.ticket(&old).await?.status(), 200);
    Ok(())
}

async fn tombstones_expire_after_90_days(app: TestApp) -> Result<()> {
    let [old, young] = [app.import(&conversation("T-1")).await?, app.import(&conversation("T-2")).await?];
    for (id, days) in [(&young, 89), (&old, 91)] {
        assert_eq!(delete(&app, app.organization, id).await?, 204);
        let millis = now().plus_millis(-days * DAY_MILLIS).as_millis();
        let age = format!("UPDATE deletions SET deleted_at = {millis} WHERE ticket_id = '{id}'");
        execute_on(&app.database, age).await?;
    }
    let organization = app.organization;
    let is_expired = || async { Ok(state_of(&app, organization, &old).await? != TicketState::Deleted) };
    eventually("the older tombstone to expire", is_expired).await?;
    app.registry.wait_for_maintenance().await?;
    assert_eq!(state_of(&app, organization, &young).await?, TicketState::Deleted);
    assert_eq!(app.submit(&conversation("T-1")).await?.status(), 409);
    Ok(())
}
