//! Lists of keys, sessions and agents: light pages, and no row that cannot be reached.

use std::collections::BTreeSet;

use anyhow::Result;
use assay_contracts::tenant::Scope;

use crate::test_app::{TestApp, listed};

/// More than the thousand rows of an answer of agent-registry.
const ROWS: usize = 1_050;

#[tokio::test]
async fn every_key_and_agent_is_reached_by_light_pages() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let organization_id = app.organization_id().await?;
    for at in 0..ROWS {
        app.create_key(&[Scope::Assess]).await?;
        app.create_agent(organization_id, &format!("agent-{at}")).await?;
    }
    let text = app.get(&session, "/console/agents").await?.text;
    assert!(text.contains("1,050 registered"), "{text}");
    let agents = ids(&app, &session, "/console/agents", ("?agent=", "next-page")).await?;
    assert_eq!(agents.len(), ROWS);
    app.services.answer("/internal/v1/evaluations", 200, listed(&["One"], 1, None));
    let text = app.get(&session, "/console/conversations").await?.text;
    assert!(text.contains("1020 more agents"), "30 are in the filter form: {text}");
    // Two keys are those of the fixture.
    let keys = ids(&app, &session, "/console/keys", ("id=\"revoke-", "next-page")).await?;
    assert_eq!(keys.len(), ROWS + 2);
    Ok(())
}

/// There are more than the two hundred rows of an answer of agent-registry.
#[tokio::test]
async fn every_session_is_reached_by_light_pages() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    for _ in 0..230 {
        app.sign_in().await?;
    }
    let others = ids(&app, &session, "/console/keys", ("/console/sessions/", "next-sessions")).await?;
    assert_eq!(others.len(), 230);
    let page = app.get(&session, "/console/keys?sessions_before=x").await?;
    assert_eq!(page.status, 400);
    assert!(page.text.contains("id=\"sessions_before-fault\""), "{}", page.text);
    Ok(())
}

/// The ids after a marker on all pages of a list, each of at most 30 kB; the link with the second id leads to the next page.
async fn ids(
    app: &TestApp,
    session: &str,
    path: &str,
    (marker, next_link): (&str, &str),
) -> Result<BTreeSet<String>> {
    let (mut found, mut address) = (BTreeSet::new(), path.to_owned());
    loop {
        let weight = app.weight(session, &address).await?;
        assert!(weight <= 30_000, "{address} weighs {weight} bytes");
        let page = app.get(session, &address).await?;
        let ids: Vec<&str> = page.text.split(marker).skip(1).map(|rest| &rest[..36]).collect();
        assert!((1..=100).contains(&ids.len()), "{address} has {} rows", ids.len());
        assert!(ids.iter().all(|id| found.insert((*id).to_owned())), "{address} repeats a row");
        match page.link(next_link) {
            Some(next) => address = next,
            None => return Ok(found),
        }
    }
}

#[tokio::test]
async fn malformed_and_unknown_parameters_of_lists_are_named() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    for path in ["/console/keys", "/console/agents"] {
        let page = app.get(&session, &format!("{path}?before=x&after=y")).await?;
        assert_eq!(page.status, 400, "{path}");
        page.assert_has(&["id=\"before-fault\"", "is no id", "id=\"after-fault\""]);
    }
    Ok(())
}
