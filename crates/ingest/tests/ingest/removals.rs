//! Tickets that are deleted, and transcripts whose period has passed.

use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, anyhow};
use assay_clients::{HttpSettings, IngestClient, Service, http_client};
use assay_contracts::event::{ConversationDeleted, ConversationsExpired, Event, Topic};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::internal::{OrganizationRetention, TicketReference};
use assay_contracts::retention::Period;
use assay_contracts::tenant::Scope;
use assay_messaging::{Delivery, Handler, Outcome, Subscription};
use assay_platform::auth::Audience;
use assay_platform::db::Database;
use assay_platform::runtime::{Phase, new_id, now};
use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use assay_testkit::{eventually, on_both_databases};

use crate::stage::{DEADLINE, Stage, claims_for, conversation, conversation_of, message, query};

on_both_databases! { Stage {
    a_deleted_ticket_is_gone_and_told_of_once,
    of_many_deletions_of_a_ticket_one_succeeds,
    only_its_own_organization_deletes_a_ticket,
    an_identity_stays_used_when_its_conversation_is_gone,
    names_that_the_ticket_brought_go_with_it_and_others_stay,
    the_scoring_worker_is_told_what_was_deleted_and_what_cannot_be_read,
    a_broken_transcript_can_be_deleted,
    transcripts_older_than_their_period_go_and_their_tickets_are_told_of,
    a_ticket_whose_transcript_has_expired_can_be_deleted_while_its_evaluation_is_kept,
    without_the_periods_nothing_is_removed,
    deletions_are_forgotten_after_their_time,
} }

const DAY: i64 = 24 * 60 * 60 * 1_000;

const TOPICS: &[Topic] = &[ConversationDeleted::TOPIC, ConversationsExpired::TOPIC];
const QUEUE: Subscription =
    Subscription { queue: "test.removals", topics: TOPICS, max_batch: 10, max_in_flight: 10 };

/// What others hear of tickets that go.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<(Vec<ConversationDeleted>, Vec<ConversationsExpired>)>>);

#[async_trait]
impl Handler for Heard {
    async fn handle(&self, deliveries: &[Delivery]) -> Vec<Outcome> {
        if let Ok(mut heard) = self.0.lock() {
            heard.0.extend(deliveries.iter().filter_map(|delivery| delivery.decode().ok()));
            heard.1.extend(deliveries.iter().filter_map(|delivery| delivery.decode().ok()));
        }
        deliveries.iter().map(|_| Outcome::Done).collect()
    }
}

impl Heard {
    fn listen(stage: &mut Stage) -> Self {
        let heard = Self::default();
        let (bus, handler) = (stage.bus.clone(), Arc::new(heard.clone()));
        stage.tasks.spawn(Phase::Consume, "listener", move |stop| async move {
            bus.consume(QUEUE, handler, stop).await
        });
        heard
    }

    fn deleted(&self) -> Result<Vec<ConversationDeleted>> {
        Ok(self.0.lock().map_err(|_| anyhow!("the listener panicked"))?.0.clone())
    }

    fn expired(&self) -> Result<Vec<ConversationsExpired>> {
        Ok(self.0.lock().map_err(|_| anyhow!("the listener panicked"))?.1.clone())
    }
}

pub async fn delete(stage: &Stage, organization: OrganizationId, id: &str) -> Result<u16> {
    let token = stage.tokens.issue(Audience::Ingest, &claims_for(organization, Scope::Tickets), now())?;
    let url = format!("{}/internal/v1/tickets/{id}", stage.address);
    Ok(stage.http.delete(url).bearer_auth(token).send().await?.status().as_u16())
}

async fn deleted_at(stage: &Stage, organization: OrganizationId, id: &str) -> Result<Value> {
    let path = format!("/internal/v1/tickets/{id}/deletion");
    let answer = stage.get(&path, &claims_for(organization, Scope::Tickets)).await?.error_for_status()?;
    Ok(answer.json::<Value>().await?["deleted_at"].clone())
}

async fn a_deleted_ticket_is_gone_and_told_of_once(mut stage: Stage) -> Result<()> {
    let heard = Heard::listen(&mut stage);
    let (gone, kept) =
        (stage.accepted(&conversation("T-1")).await?, stage.accepted(&conversation("T-2")).await?);
    assert_eq!(deleted_at(&stage, stage.organization, &gone).await?, Value::Null);
    assert_eq!(delete(&stage, stage.organization, &gone).await?, 204);
    assert_eq!(
        (stage.ticket(&gone).await?.status(), stage.ticket(&kept).await?.status()),
        (404.try_into()?, 200.try_into()?)
    );
    assert!(deleted_at(&stage, stage.organization, &gone).await?.is_i64());
    assert_eq!(deleted_at(&stage, new_id(), &gone).await?, Value::Null);
    assert_eq!(delete(&stage, stage.organization, &gone).await?, 404);
    // Told of after whatever the second deletion would have told.
    assert_eq!(delete(&stage, stage.organization, &kept).await?, 204);
    eventually("the news", || async { Ok(heard.deleted()?.len() >= 2) }).await?;
    let told: Vec<(OrganizationId, String)> =
        heard.deleted()?.iter().map(|event| (event.organization_id, event.ticket_id.to_string())).collect();
    assert_eq!(told, [(stage.organization, gone), (stage.organization, kept)]);
    Ok(())
}

async fn of_many_deletions_of_a_ticket_one_succeeds(mut stage: Stage) -> Result<()> {
    let heard = Heard::listen(&mut stage);
    for number in 0..5 {
        let id = stage.accepted(&conversation(&format!("T-{number}"))).await?;
        let statuses = try_join_all((0..6).map(|_| delete(&stage, stage.organization, &id))).await?;
        assert_eq!(statuses.iter().filter(|status| **status == 204).count(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [204, 404].contains(status)), "{statuses:?}");
    }
    eventually("the news", || async { Ok(heard.deleted()?.len() == 5) }).await
}

async fn only_its_own_organization_deletes_a_ticket(stage: Stage) -> Result<()> {
    let id = stage.accepted(&conversation("T-1")).await?;
    assert_eq!(delete(&stage, new_id(), &id).await?, 404);
    for unknown in ["T-1", "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11", &id.to_uppercase()] {
        assert_eq!(delete(&stage, stage.organization, unknown).await?, 404, "{unknown}");
    }
    assert_eq!(stage.ticket(&id).await?.status(), 200);
    Ok(())
}

async fn an_identity_stays_used_when_its_conversation_is_gone(stage: Stage) -> Result<()> {
    let id = stage.accepted(&conversation("T-1")).await?;
    assert_eq!(delete(&stage, stage.organization, &id).await?, 204);
    for _ in 0..2 {
        let refused = stage.submit_with_key("again", &conversation("T-1")).await?;
        assert_eq!(refused.status(), 409);
        assert_eq!(refused.json::<Value>().await?["ticket_id"], id.as_str());
    }
    // Another organization never used it.
    let foreign = stage.submit_to(&stage.address, new_id(), None, conversation("T-1").to_string()).await?;
    assert_eq!(foreign.status(), 202);
    Ok(())
}

async fn names_that_the_ticket_brought_go_with_it_and_others_stay(stage: Stage) -> Result<()> {
    let contact = |id: &str, name: &str| json!({"type": "contact", "external_id": id, "name": name});
    let first = json!([message("1", 1_000, contact("a", "Ann")), message("2", 2_000, contact("b", "Bob"))]);
    let first = stage.accepted(&conversation_of("T-1", first)).await?;
    let second =
        json!([message("1", 3_000, contact("b", "Robert")), message("2", 3_000, contact("c", "Cid"))]);
    stage.accepted(&conversation_of("T-2", second)).await?;
    assert_eq!(delete(&stage, stage.organization, &first).await?, 204);
    let names = query(&stage.database, "SELECT name AS value FROM participants ORDER BY name").await?;
    assert_eq!(names, ["Cid", "Robert"]);
    Ok(())
}

async fn the_scoring_worker_is_told_what_was_deleted_and_what_cannot_be_read(stage: Stage) -> Result<()> {
    let [gone, broken, good] = [
        stage.accepted(&conversation("T-1")).await?,
        stage.accepted(&conversation("T-2")).await?,
        stage.accepted(&conversation("T-3")).await?,
    ];
    delete(&stage, stage.organization, &gone).await?;
    break_transcript(&stage.database, &broken).await?;
    let reference = |id: &str| -> Result<TicketReference> {
        Ok(TicketReference { organization_id: stage.organization, ticket_id: id.parse()? })
    };
    let foreign = TicketReference { organization_id: new_id(), ticket_id: gone.parse()? };
    let unknown = TicketReference { organization_id: stage.organization, ticket_id: new_id() };
    let wanted = [foreign, unknown, reference(&gone)?, reference(&broken)?, reference(&good)?];
    let (http, url) = (http_client(HttpSettings::default())?, Url::parse(&stage.address)?);
    let service = Service::new(http, url, Audience::Ingest, stage.tokens.clone(), DEADLINE);
    let answer = IngestClient::new(service).read_transcripts(&wanted).await?;
    assert_eq!(answer.deleted, [reference(&gone)?]);
    let found: Vec<String> = answer.transcripts.iter().map(|found| found.ticket.id.to_string()).collect();
    assert_eq!(found, [good]);
    let unreadable = answer.unreadable.first().context("nothing is unreadable")?;
    assert_eq!((answer.unreadable.len(), unreadable.ticket.id.to_string()), (1, broken));
    assert_eq!(unreadable.ticket.external_id, "T-2");
    Ok(())
}

async fn a_broken_transcript_can_be_deleted(stage: Stage) -> Result<()> {
    let id = stage.accepted(&conversation("T-1")).await?;
    break_transcript(&stage.database, &id).await?;
    assert_eq!(delete(&stage, stage.organization, &id).await?, 204);
    assert_eq!(stage.ticket(&id).await?.status(), 404);
    Ok(())
}

async fn break_transcript(database: &Database, id: &str) -> Result<()> {
    // The format of this release, and nothing that it would have written.
    let bytes = match database {
        Database::Postgres(_) => r"'\x0100000000'",
        Database::Sqlite(_) => "x'0100000000'",
    };
    run(database, format!("UPDATE conversations SET packed = {bytes} WHERE id = '{id}'")).await
}

pub async fn run(database: &Database, statement: String) -> Result<()> {
    use diesel::connection::SimpleConnection as _;
    match database {
        Database::Postgres(postgres) => {
            postgres.run(move |c| c.batch_execute(&statement).map_err(anyhow::Error::from)).await
        }
        Database::Sqlite(sqlite) => {
            sqlite.write(move |c| c.batch_execute(&statement).map_err(anyhow::Error::from)).await
        }
    }
}

/// A ticket that seems to have been imported so many days ago.
async fn imported_days_ago(stage: &Stage, days: i64) -> Result<String> {
    let at = now().plus_millis(-days * DAY);
    let contact =
        json!({"type": "contact", "external_id": format!("c-{days}"), "name": format!("Name {days}")});
    let body = conversation_of(&format!("{days} days"), json!([message("1", 1_000, contact)]));
    let id = stage.accepted(&body).await?;
    let first = TicketId::first_at(at).as_uuid().as_u128();
    let old = Uuid::from_u128(first | (Uuid::new_v4().as_u128() >> 48)).to_string();
    let identities = match &stage.database {
        Database::Postgres(_) => {
            format!("UPDATE identities SET ticket_id = '{old}' WHERE ticket_id = '{id}';")
        }
        Database::Sqlite(_) => String::new(),
    };
    let millis = at.as_millis();
    let age = format!("UPDATE conversations SET id = '{old}', created_at = {millis} WHERE id = '{id}'");
    run(&stage.database, identities + &age).await?;
    Ok(old)
}

fn kept(organization_id: OrganizationId, transcripts: Period, evaluations: Period) -> OrganizationRetention {
    OrganizationRetention { organization_id, transcripts, evaluations, files: None }
}

async fn transcripts_older_than_their_period_go_and_their_tickets_are_told_of(
    mut stage: Stage,
) -> Result<()> {
    let heard = Heard::listen(&mut stage);
    let organization = stage.organization;
    let young = imported_days_ago(&stage, 29).await?;
    let old = imported_days_ago(&stage, 31).await?;
    let without_evaluation = imported_days_ago(&stage, 61).await?;
    let nothing_to_remove = [
        kept(organization, Period::Forever, Period::Days(1)),
        kept(new_id(), Period::Days(1), Period::Days(1)),
    ];
    stage.registry.tell_periods(Some(nothing_to_remove.to_vec()));
    stage.registry.after_a_round().await?;
    for id in [&young, &old, &without_evaluation] {
        assert_eq!(stage.ticket(id).await?.status(), 200);
    }
    stage.registry.tell_periods(Some(vec![kept(organization, Period::Days(30), Period::Days(60))]));
    for id in [&old, &without_evaluation] {
        eventually("the removal", || async { Ok(stage.ticket(id).await?.status() == 404) }).await?;
        assert_eq!(deleted_at(&stage, organization, id).await?, Value::Null, "it was not deleted by anybody");
    }
    assert_eq!(stage.ticket(&young).await?.status(), 200);
    eventually("the news", || async { Ok(!heard.expired()?.is_empty()) }).await?;
    stage.registry.after_a_round().await?;
    let told: Vec<_> = heard.expired()?.into_iter().flat_map(|event| event.tickets).collect();
    let ids: Vec<String> = told.iter().map(|ticket| ticket.id.to_string()).collect();
    assert_eq!(ids, std::slice::from_ref(&old), "evaluations are kept for 60 days");
    assert_eq!((told[0].external_id.as_str(), told[0].subject.as_deref()), ("31 days", None));
    let names = query(&stage.database, "SELECT name AS value FROM participants").await?;
    assert_eq!(names, ["Name 29"]);
    let refused = stage.submit(&conversation("31 days")).await?;
    assert_eq!(refused.status(), 409);
    assert_eq!(refused.json::<Value>().await?["ticket_id"], old.as_str());
    Ok(())
}

async fn a_ticket_whose_transcript_has_expired_can_be_deleted_while_its_evaluation_is_kept(
    mut stage: Stage,
) -> Result<()> {
    let heard = Heard::listen(&mut stage);
    let organization = stage.organization;
    let old = imported_days_ago(&stage, 31).await?;
    let without_evaluation = imported_days_ago(&stage, 61).await?;
    stage.registry.tell_periods(Some(vec![kept(organization, Period::Days(30), Period::Days(60))]));
    for id in [&old, &without_evaluation] {
        eventually("the removal", || async { Ok(stage.ticket(id).await?.status() == 404) }).await?;
    }
    assert_eq!(delete(&stage, new_id(), &old).await?, 404);
    assert_eq!(delete(&stage, organization, &old).await?, 204);
    assert_eq!(delete(&stage, organization, &old).await?, 404);
    assert_eq!(delete(&stage, organization, &without_evaluation).await?, 404, "nothing of it is left");
    assert!(deleted_at(&stage, organization, &old).await?.is_i64());
    eventually("the news", || async { Ok(heard.deleted()?.len() == 1) }).await
}

async fn without_the_periods_nothing_is_removed(stage: Stage) -> Result<()> {
    let old = imported_days_ago(&stage, 400).await?;
    stage.registry.tell_periods(None);
    stage.registry.after_a_round().await?;
    assert_eq!(stage.ticket(&old).await?.status(), 200);
    Ok(())
}

async fn deletions_are_forgotten_after_their_time(stage: Stage) -> Result<()> {
    let [old, young] =
        [stage.accepted(&conversation("T-1")).await?, stage.accepted(&conversation("T-2")).await?];
    for (id, days) in [(&young, 89), (&old, 91)] {
        assert_eq!(delete(&stage, stage.organization, id).await?, 204);
        let millis = now().plus_millis(-days * DAY).as_millis();
        let age = format!("UPDATE deletions SET deleted_at = {millis} WHERE ticket_id = '{id}'");
        run(&stage.database, age).await?;
    }
    let organization = stage.organization;
    let forgotten = || async { Ok(deleted_at(&stage, organization, &old).await? == Value::Null) };
    eventually("the older one to be forgotten", forgotten).await?;
    stage.registry.after_a_round().await?;
    assert!(deleted_at(&stage, organization, &young).await?.is_i64());
    assert_eq!(stage.submit(&conversation("T-1")).await?.status(), 409);
    Ok(())
}
