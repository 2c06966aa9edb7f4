//! Concurrent imports: batched into few transactions (group commit), each with its own answer.

use std::collections::HashSet;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::Value;

use assay_testkit::on_both_databases;

use crate::test_app::{TestApp, conversation};

on_both_databases! { TestApp {
    concurrent_equal_imports_on_two_replicas_are_accepted_once,
    concurrent_different_imports_are_all_accepted_and_readable,
} }

async fn concurrent_equal_imports_on_two_replicas_are_accepted_once(mut app: TestApp) -> Result<()> {
    let replica = app.start_replica()?;
    for round in 0..5 {
        let addresses = (0..20).map(|n| if n % 2 == 0 { app.address.clone() } else { replica.clone() });
        let body = conversation(&format!("T-{round}")).to_string();
        assert_one_is_accepted(&app, addresses.collect(), &body).await?;
    }
    Ok(())
}

async fn concurrent_different_imports_are_all_accepted_and_readable(app: TestApp) -> Result<()> {
    let bodies: Vec<Value> = (0..150).map(|number| conversation(&format!("T-{number}"))).collect();
    let tickets = try_join_all(bodies.iter().map(|body| app.import(body))).await?;
    assert_eq!(tickets.iter().collect::<HashSet<_>>().len(), bodies.len());
    for (number, id) in tickets.iter().enumerate() {
        let ticket: Value = app.ticket(id).await?.error_for_status()?.json().await?;
        assert_eq!(ticket["external_id"], format!("T-{number}"));
    }
    Ok(())
}

async fn assert_one_is_accepted(app: &TestApp, addresses: Vec<String>, body: &str) -> Result<()> {
    let answers = try_join_all(addresses.iter().map(|address| async {
        let response = app.submit_to(address, app.organization, None, body.to_owned()).await?;
        anyhow::Ok((response.status().as_u16(), response.json::<Value>().await?))
    }))
    .await?;
    let (accepted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(status, _)| *status == 202);
    assert_eq!(accepted.len(), 1);
    for (status, problem) in refused {
        assert_eq!((status, &problem["ticket_id"]), (409, &accepted[0].1["id"]), "{problem}");
    }
    Ok(())
}
