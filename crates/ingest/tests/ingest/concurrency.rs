//! Many imports at once: gathered into few transactions, each with its own answer.

use std::collections::HashSet;

use anyhow::Result;
use futures_util::future::try_join_all;
use serde_json::Value;

use assay_testkit::on_both_databases;

use crate::stage::{Stage, conversation};

on_both_databases! { Stage {
    of_fifty_equal_imports_at_once_exactly_one_is_accepted,
    replicas_accept_an_import_once_between_them,
    different_imports_at_once_are_all_accepted_and_readable,
} }

async fn of_fifty_equal_imports_at_once_exactly_one_is_accepted(stage: Stage) -> Result<()> {
    let body = conversation("T-1").to_string();
    let addresses = vec![stage.address.clone(); 50];
    assert_one_is_accepted(&stage, addresses, &body).await
}

async fn replicas_accept_an_import_once_between_them(mut stage: Stage) -> Result<()> {
    let replica = stage.start_replica()?;
    for round in 0..5 {
        let addresses = (0..20).map(|n| if n % 2 == 0 { stage.address.clone() } else { replica.clone() });
        let body = conversation(&format!("T-{round}")).to_string();
        assert_one_is_accepted(&stage, addresses.collect(), &body).await?;
    }
    Ok(())
}

async fn different_imports_at_once_are_all_accepted_and_readable(stage: Stage) -> Result<()> {
    let bodies: Vec<Value> = (0..150).map(|number| conversation(&format!("T-{number}"))).collect();
    let tickets = try_join_all(bodies.iter().map(|body| stage.accepted(body))).await?;
    assert_eq!(tickets.iter().collect::<HashSet<_>>().len(), bodies.len());
    for (number, id) in tickets.iter().enumerate() {
        let ticket: Value = stage.ticket(id).await?.error_for_status()?.json().await?;
        assert_eq!(ticket["external_id"], format!("T-{number}"));
    }
    Ok(())
}

async fn assert_one_is_accepted(stage: &Stage, addresses: Vec<String>, body: &str) -> Result<()> {
    let answers = try_join_all(addresses.iter().map(|address| async {
        let response = stage.submit_to(address, stage.organization, None, body.to_owned()).await?;
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
