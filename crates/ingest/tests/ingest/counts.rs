//! `GET /internal/v1/tickets`: the number of tickets in a period, of at most the newest 10,000.

use anyhow::Result;
use assay_contracts::ids::TicketId;
use assay_contracts::internal::TicketCount;
use assay_contracts::tenant::Scope;
use assay_platform::db::Database;
use assay_platform::runtime::now;
use assay_testkit::{execute_on, on_both_databases};
use reqwest::Response;

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    tickets_of_a_period_are_counted_from_a_first_id,
    count_considers_only_the_newest_tickets,
    count_without_a_valid_first_id_is_refused,
} }

async fn get_count(app: &TestApp, query: &str) -> Result<Response> {
    app.get(&format!("/internal/v1/tickets{query}"), &app.claims(Scope::EvaluationsRead)).await
}

async fn count(app: &TestApp, query: &str) -> Result<TicketCount> {
    Ok(get_count(app, query).await?.error_for_status()?.json().await?)
}

async fn tickets_of_a_period_are_counted_from_a_first_id(app: TestApp) -> Result<()> {
    let mut ids = Vec::new();
    for (name, millis) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
        let mut body = conversation(name);
        body["messages"][0]["timestamp"] = millis.into();
        ids.push(app.import(&body).await?);
    }
    let whole_count = |count| TicketCount { count, since: None };
    let earlier = TicketId::min_at(now().plus_millis(-60_000));
    assert_eq!(count(&app, &format!("?since={earlier}")).await?, whole_count(3));
    assert_eq!(count(&app, &format!("?since={earlier}&from=2000")).await?, whole_count(2));
    assert_eq!(count(&app, &format!("?since={earlier}&from=1000&to=2000")).await?, whole_count(1));
    ids.sort();
    assert_eq!(count(&app, &format!("?since={}", ids[1])).await?, whole_count(2));
    Ok(())
}

async fn count_considers_only_the_newest_tickets(app: TestApp) -> Result<()> {
    const COLUMNS: &str =
        "organization_id, external_id, source, source_account_id, subject, started_at, ended_at,
        created_at, agents, packed";
    let first = app.import(&conversation("T-1")).await?;
    // The ids of the copies are greater than `first` in the same millisecond, and ascend with `number`.
    let id_prefix = format!("{}-bfff-", &first[..18]);
    let statement = match &app.database {
        Database::Postgres(_) => format!(
            "INSERT INTO conversations (id, {COLUMNS})
             SELECT ('{id_prefix}' || lpad(to_hex(number), 12, '0'))::uuid, {COLUMNS}
               FROM conversations, generate_series(1, 10500) AS number"
        ),
        Database::Sqlite(_) => format!(
            "WITH RECURSIVE numbers (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < 10500)
             INSERT INTO conversations (id, {COLUMNS})
             SELECT '{id_prefix}' || printf('%012x', number), {COLUMNS} FROM conversations, numbers"
        ),
    };
    execute_on(&app.database, statement).await?;
    let since = TicketId::min_at(now().plus_millis(-60_000));
    let found = count(&app, &format!("?since={since}")).await?;
    // Numbers 501 to 10,500.
    let expected = format!("{id_prefix}{:012x}", 501).parse().ok();
    assert_eq!((found.count, found.since), (10_000, expected));
    assert_eq!(count(&app, &format!("?since={since}&to=1")).await?.count, 0, "all began later");
    Ok(())
}

async fn count_without_a_valid_first_id_is_refused(app: TestApp) -> Result<()> {
    for query in ["", "?since=", "?since=x", "?since=1&other=2"] {
        assert_eq!(get_count(&app, query).await?.status(), 400, "{query}");
    }
    Ok(())
}
