//! Retention periods. Reset ones, and unknown organizations: `tests/e2e/scenarios/retention_command.rs`.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use assay_agent_registry::keys::{OrganizationName, create};
use assay_agent_registry::retention::{OverrideChange, RetentionChange, list, set};
use assay_clients::{RegistryClient, ServiceClient, http_client};
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::RetentionPeriod;
use assay_contracts::tenant::Scope;
use assay_platform::auth::Audience;
use assay_testkit::on_both_databases;

use crate::test_app::{DEADLINE, TestApp, claims_of, new_key};

on_both_databases! { TestApp {
    retention_overrides_replace_defaults,
    retention_pages_list_every_organization,
} }

const PATH: &str = "/internal/v1/retention";

fn client(app: &TestApp) -> Result<RegistryClient> {
    let (http, url) = (http_client()?, app.address.parse()?);
    let service = ServiceClient::new(http, url, Audience::AgentRegistry, app.tokens.clone(), DEADLINE);
    Ok(RegistryClient::new(service))
}

fn name(text: &str) -> Result<OrganizationName> {
    Ok(OrganizationName::parse(text)?)
}

async fn retention_of(app: &TestApp, organization: &str) -> Result<OrganizationRetention> {
    let id = app.create_credentials(organization).await?.organization_id;
    let all = client(app)?.retention().await?;
    all.into_iter().find(|retention| retention.organization_id == id).context("not listed")
}

async fn retention_overrides_replace_defaults(app: TestApp) -> Result<()> {
    let before = retention_of(&app, "acme").await?;
    assert_eq!(
        (before.transcripts, before.evaluations, before.files),
        (RetentionPeriod::Forever, RetentionPeriod::Days(365), None)
    );
    let files =
        RetentionChange { files: OverrideChange::Set(Some(RetentionPeriod::Days(7))), ..Default::default() };
    set(&app.database, name("acme")?, files).await?.context("not set")?;
    let change = RetentionChange {
        transcripts: OverrideChange::Set(Some(RetentionPeriod::Days(30))),
        evaluations: OverrideChange::Set(Some(RetentionPeriod::Forever)),
        files: OverrideChange::Keep,
    };
    set(&app.database, name("acme")?, change).await?.context("not set")?;
    let after = retention_of(&app, "acme").await?;
    let expected = (RetentionPeriod::Days(30), RetentionPeriod::Forever, Some(RetentionPeriod::Days(7)));
    assert_eq!((after.transcripts, after.evaluations, after.files), expected);
    let other = retention_of(&app, "other").await?;
    assert_eq!(
        (other.transcripts, other.evaluations, other.files),
        (RetentionPeriod::Forever, RetentionPeriod::Days(365), None)
    );
    Ok(())
}

async fn retention_pages_list_every_organization(app: TestApp) -> Result<()> {
    // One more than fits on a page, so that there are two.
    for number in 0..501 {
        create(&app.database, new_key(&format!("organization {number}"))?).await?;
    }
    let all = client(&app)?.retention().await?;
    let distinct: BTreeSet<_> = all.iter().map(|retention| retention.organization_id).collect();
    assert_eq!((all.len(), distinct.len()), (501, 501));
    assert_eq!(list(&app.database, None).await?.len(), 501);
    Ok(())
}

#[tokio::test]
async fn retention_needs_a_service_token() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    assert_eq!(app.get(PATH, &claims_of(&credentials, Scope::Admin)).await?.status(), 401);
    Ok(())
}
