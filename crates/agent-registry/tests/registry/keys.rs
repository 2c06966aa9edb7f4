//! API keys: creation, revocation, resolution. What a key opens, and until when: `tests/e2e/scenarios/isolation.rs`.

use anyhow::Result;
use assay_agent_registry::keys::{
    CreateKeyError, KeyRecord, OrganizationName, Revocation, bootstrap, create, list, revoke,
};
use assay_contracts::tenant::{Scope, Scopes};
use assay_platform::auth::ApiKey;
use assay_platform::runtime::{new_id, now};
use futures_util::future::try_join_all;

use assay_testkit::{eventually, on_both_databases};

use crate::test_app::{TestApp, claims_of, new_key};

on_both_databases! { TestApp {
    keys_for_one_organization_name_share_an_organization,
    key_that_expires_in_the_past_is_refused,
    key_is_revoked_once,
    key_use_is_recorded,
    keys_are_listed_newest_first_by_organization,
    concurrent_bootstraps_store_one_key,
    bootstrap_does_not_change_existing_key,
} }

async fn keys_for_one_organization_name_share_an_organization(app: TestApp) -> Result<()> {
    let one = app.create_credentials("acme").await?;
    let another = app.create_credentials("acme").await?;
    let foreign = app.create_credentials("ACME").await?;
    assert_eq!(one.organization_id, another.organization_id);
    assert_ne!(one.organization_id, foreign.organization_id);
    Ok(())
}

async fn key_that_expires_in_the_past_is_refused(app: TestApp) -> Result<()> {
    let mut expired = new_key("acme")?;
    expired.expires_at = Some(now().plus_millis(-1));
    let refused = create(&app.database, expired).await;
    assert!(matches!(refused, Err(CreateKeyError::ExpiresInThePast(_))));
    Ok(())
}

async fn key_is_revoked_once(app: TestApp) -> Result<()> {
    let credentials = app.new_credentials().await?;
    assert_eq!(revoke(&app.database, credentials.key_id).await?, Revocation::Revoked);
    assert!(matches!(revoke(&app.database, credentials.key_id).await?, Revocation::AlreadyRevoked(_)));
    assert_eq!(revoke(&app.database, new_id()).await?, Revocation::Unknown);
    Ok(())
}

async fn key_use_is_recorded(app: TestApp) -> Result<()> {
    let created = create(&app.database, new_key("acme")?).await?;
    assert!(!app.has_recorded_use(created.id).await?);
    app.resolve(&created.key).await?;
    eventually("the use to be recorded", || app.has_recorded_use(created.id)).await
}

async fn keys_are_listed_newest_first_by_organization(app: TestApp) -> Result<()> {
    let first = create(&app.database, new_key("acme")?).await?;
    let second = create(&app.database, new_key("acme")?).await?;
    let other = create(&app.database, new_key("other")?).await?;
    let ids = |keys: Vec<KeyRecord>| keys.into_iter().map(|key| key.id).collect::<Vec<_>>();
    assert_eq!(ids(list(&app.database, None).await?), [other.id, second.id, first.id]);
    let acme = list(&app.database, Some(OrganizationName::parse("acme")?)).await?;
    assert!(acme.iter().all(|key| key.organization == "acme" && key.name == "test"));
    assert_eq!(ids(acme), [second.id, first.id]);
    Ok(())
}

async fn concurrent_bootstraps_store_one_key(app: TestApp) -> Result<()> {
    let key = ApiKey::parse("a-bootstrap-key-of-thirty-two-ch")?;
    let organization = OrganizationName::parse("default")?;
    try_join_all((0..6).map(|_| bootstrap(&app.database, &key, organization.clone()))).await?;
    let keys = list(&app.database, None).await?;
    assert_eq!(keys.len(), 1);
    assert_eq!((keys[0].organization.as_str(), &keys[0].scopes), ("default", &Scopes::default_for_keys()));
    let grant = app.resolve(&key).await?.grant;
    assert_eq!(grant.map(|grant| grant.key_id), Some(keys[0].id));
    Ok(())
}

async fn bootstrap_does_not_change_existing_key(app: TestApp) -> Result<()> {
    let credentials = app.create_credentials("acme").await?;
    revoke(&app.database, credentials.key_id).await?;
    bootstrap(&app.database, &credentials.key, OrganizationName::parse("default")?).await?;
    let keys = list(&app.database, None).await?;
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].organization, "acme");
    assert_eq!(app.resolve(&credentials.key).await?.grant, None, "revoked stays revoked");
    Ok(())
}

#[tokio::test]
async fn key_resolution_needs_a_service_token() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    let path = "/internal/v1/keys/resolve";
    let body = format!(r#"{{"key_sha256":"{}"}}"#, credentials.key.hash());
    assert_eq!(app.post(path, &claims_of(&credentials, Scope::Admin), body).await?.status(), 401);
    for body in [r#"{"key_sha256":"abc"}"#, "{}", "no JSON"] {
        let claims = assay_platform::auth::ServiceClaims::Service;
        assert_eq!(app.post(path, &claims, body.to_owned()).await?.status(), 400, "{body}");
    }
    Ok(())
}
