//! Imports while the database rejects statements or does not respond.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use assay_platform::db::{Database, DatabaseError};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use futures_util::future::{join, try_join_all};
use serde_json::Value;

use assay_ingest::{MIGRATIONS, SCHEMA};
use assay_testkit::{ServiceDatabase, eventually, execute_on, on_both_databases};

use crate::test_app::{TestApp, config, conversation};

on_both_databases! { TestApp {
    import_rejected_by_the_database_does_not_fail_its_batch,
} }

async fn import_rejected_by_the_database_does_not_fail_its_batch(app: TestApp) -> Result<()> {
    let poison = match &app.database {
        Database::Postgres(_) => "ALTER TABLE conversations ADD CHECK (external_id <> 'poison')",
        Database::Sqlite(_) => {
            "CREATE TRIGGER poison BEFORE INSERT ON conversations WHEN new.external_id = 'poison'
             BEGIN SELECT RAISE(ABORT, 'poisoned'); END"
        }
    };
    execute_on(&app.database, poison).await?;
    let tickets: Vec<String> =
        (0..40).map(|n| if n % 10 == 0 { "poison".into() } else { format!("T-{n}") }).collect();
    let submit = async |ticket: &String| {
        let response = app.submit(&conversation(ticket)).await?;
        anyhow::Ok((ticket.clone(), response.status().as_u16(), response.text().await?))
    };
    let answers = try_join_all(tickets.iter().map(submit)).await?;
    for (ticket, status, body) in answers {
        assert_eq!(status, if ticket == "poison" { 500 } else { 202 }, "{ticket}: {body}");
        assert!(
            !body.contains("poisoned") && !body.contains("check"),
            "the cause is not for clients: {body}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_database_refuses_imports_in_time_and_recovers() -> Result<()> {
    let service_database = ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?;
    let mut config = config(&service_database)?;
    config.accept_queue = 4;
    config.accept_deadline_milliseconds = 300;
    let app = TestApp::run(config, service_database)?;
    eventually("the first import", || app.is_accepted("before")).await?;

    let (blocked, is_blocked) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let Database::Postgres(postgres) = app.database.clone() else { return Err(anyhow!("not PostgreSQL")) };
    let blocker = postgres.run(move |connection| {
        connection.transaction(|tx| {
            tx.batch_execute("LOCK TABLE identities IN ACCESS EXCLUSIVE MODE")?;
            // Errors mean that the test has failed already.
            let _ = (blocked.send(()), released.recv());
            Ok::<(), DatabaseError>(())
        })
    });
    let requests = async {
        tokio::task::block_in_place(|| is_blocked.recv_timeout(Duration::from_secs(10)))
            .context("no lock")?;
        let began = Instant::now();
        let answers = try_join_all((0..30).map(|number| {
            let app = &app;
            async move {
                let response = app.submit(&conversation(&format!("T-{number}"))).await?;
                let retry_after = response.headers().contains_key("retry-after");
                anyhow::Ok((response.status().as_u16(), retry_after, response.json::<Value>().await?))
            }
        }))
        .await?;
        assert!(began.elapsed() < Duration::from_secs(5), "answered after {:?}", began.elapsed());
        for (status, retry_after, problem) in answers {
            assert_eq!((status, retry_after, &problem["code"]), (503, true, &"unavailable".into()));
        }
        release.send(())?;
        anyhow::Ok(())
    };
    let (unblocked, requested) = join(blocker, requests).await;
    requested?;
    unblocked?;
    eventually("an import after the outage", || app.is_accepted("after")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn service_recovers_after_all_connections_were_terminated() -> Result<()> {
    let service_database = ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?;
    let database = service_database.postgres_database().ok_or_else(|| anyhow!("not PostgreSQL"))?;
    let mut administrator = PgConnection::establish(&database.admin_url())?;
    let app = TestApp::run(config(&service_database)?, service_database)?;
    let ticket = app.import(&conversation("before")).await?;
    // Uses every connection of the pool, so that every one is terminated.
    try_join_all((0..20).map(|_| app.ticket(&ticket))).await?;

    administrator.batch_execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )?;
    let is_read = || async { Ok(app.ticket(&ticket).await?.status() == 200) };
    eventually("a ticket to be read", is_read).await?;
    let is_accepted = || async { Ok(app.submit(&conversation("after")).await?.status() == 202) };
    eventually("an import to be accepted", is_accepted).await?;
    let all_are_read = || async {
        let answers = try_join_all((0..20).map(|_| app.ticket(&ticket))).await?;
        Ok(answers.iter().all(|answer| answer.status() == 200))
    };
    eventually("all connections to be replaced", all_are_read).await
}
