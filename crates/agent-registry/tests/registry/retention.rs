//! How long organizations keep things.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use assay_agent_registry::keys::{OrganizationName, create};
use assay_agent_registry::retention::{PeriodChange, RetentionChange, list, set};
use assay_clients::{HttpSettings, RegistryClient, Service, http_client};
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::Period;
use assay_contracts::tenant::Scope;
use assay_platform::auth::Audience;
use assay_testkit::on_both_databases;

use crate::stage::{DEADLINE, Stage, for_member, new_key};

on_both_databases! { Stage {
    an_organization_keeps_things_as_the_installation_does_until_it_has_its_own_periods,
    a_period_can_be_given_back_to_the_installation,
    an_organization_that_does_not_exist_has_no_periods,
    every_organization_is_told_of_page_by_page,
} }

const PATH: &str = "/internal/v1/retention";

fn client(stage: &Stage) -> Result<RegistryClient> {
    let (http, url) = (http_client(HttpSettings::default())?, stage.address.parse()?);
    let service = Service::new(http, url, Audience::AgentRegistry, stage.tokens.clone(), DEADLINE);
    Ok(RegistryClient::new(service))
}

fn name(text: &str) -> Result<OrganizationName> {
    Ok(OrganizationName::parse(text)?)
}

async fn told(stage: &Stage, organization: &str) -> Result<OrganizationRetention> {
    let id = stage.member_of(organization).await?.organization_id;
    let all = client(stage)?.retention().await?;
    all.into_iter().find(|told| told.organization_id == id).context("not told of")
}

async fn an_organization_keeps_things_as_the_installation_does_until_it_has_its_own_periods(
    stage: Stage,
) -> Result<()> {
    let before = told(&stage, "acme").await?;
    assert_eq!(
        (before.transcripts, before.evaluations, before.files),
        (Period::Forever, Period::Days(365), None)
    );
    let files = RetentionChange { files: PeriodChange::Set(Some(Period::Days(7))), ..Default::default() };
    set(&stage.database, name("acme")?, files).await?.context("not set")?;
    let change = RetentionChange {
        transcripts: PeriodChange::Set(Some(Period::Days(30))),
        evaluations: PeriodChange::Set(Some(Period::Forever)),
        files: PeriodChange::Keep,
    };
    set(&stage.database, name("acme")?, change).await?.context("not set")?;
    let after = told(&stage, "acme").await?;
    let expected = (Period::Days(30), Period::Forever, Some(Period::Days(7)));
    assert_eq!((after.transcripts, after.evaluations, after.files), expected);
    let other = told(&stage, "other").await?;
    assert_eq!(
        (other.transcripts, other.evaluations, other.files),
        (Period::Forever, Period::Days(365), None)
    );
    Ok(())
}

async fn a_period_can_be_given_back_to_the_installation(stage: Stage) -> Result<()> {
    stage.member_of("acme").await?;
    for period in [Some(Period::Days(1)), None] {
        let change = RetentionChange { evaluations: PeriodChange::Set(period), ..Default::default() };
        let record = set(&stage.database, name("acme")?, change).await?.context("not set")?;
        assert_eq!(record.own.evaluations, period);
        assert_eq!(list(&stage.database, Some(name("acme")?)).await?, [record]);
    }
    assert_eq!(told(&stage, "acme").await?.evaluations, Period::Days(365));
    Ok(())
}

async fn an_organization_that_does_not_exist_has_no_periods(stage: Stage) -> Result<()> {
    let change = RetentionChange { files: PeriodChange::Set(Some(Period::Days(7))), ..Default::default() };
    assert_eq!(set(&stage.database, name("nobody")?, change).await?, None);
    assert_eq!(list(&stage.database, None).await?, []);
    Ok(())
}

async fn every_organization_is_told_of_page_by_page(stage: Stage) -> Result<()> {
    // One more than fits on a page, so that there are two.
    for number in 0..501 {
        create(&stage.database, new_key(&format!("organization {number}"))?).await?;
    }
    let all = client(&stage)?.retention().await?;
    let distinct: BTreeSet<_> = all.iter().map(|told| told.organization_id).collect();
    assert_eq!((all.len(), distinct.len()), (501, 501));
    assert_eq!(list(&stage.database, None).await?.len(), 501);
    Ok(())
}

#[tokio::test]
async fn periods_are_for_services_only() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let member = stage.member().await?;
    let token = stage.token(&for_member(&member, Scope::Admin))?;
    let response = stage.http.get(format!("{}{PATH}", stage.address)).bearer_auth(token).send().await?;
    assert_eq!(response.status(), 401);
    Ok(())
}
