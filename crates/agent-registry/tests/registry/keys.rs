//! API keys: made and revoked by operators, resolved for the gateway.

use anyhow::Result;
use assay_agent_registry::keys::{
    CreateKeyError, KeyRecord, OrganizationName, Revocation, bootstrap, create, list, revoke,
};
use assay_contracts::tenant::{Scope, Scopes};
use assay_platform::auth::ApiKey;
use assay_platform::runtime::{new_id, now};
use futures_util::future::try_join_all;

use assay_testkit::{eventually, on_both_databases};

use crate::stage::{Stage, for_member, new_key};

on_both_databases! { Stage {
    a_key_resolves_to_its_organization_and_scopes,
    keys_of_one_organization_belong_together,
    an_unknown_an_expired_and_a_revoked_key_are_answered_alike,
    a_key_is_revoked_once,
    the_use_of_a_key_is_recorded,
    keys_are_listed_newest_first_by_organization,
    the_bootstrap_key_is_stored_once_however_many_replicas_start,
    a_known_key_is_not_changed_by_the_bootstrap,
} }

async fn a_key_resolves_to_its_organization_and_scopes(stage: Stage) -> Result<()> {
    let mut new = new_key("acme")?;
    new.scopes = Scopes::from_iter([Scope::Tickets, Scope::Admin]);
    let created = create(&stage.database, new).await?;
    let grant = stage.resolve(&created.key).await?.grant;
    let grant = grant.ok_or_else(|| anyhow::anyhow!("the key is not known"))?;
    assert_eq!(grant.key_id, created.id);
    assert_eq!(grant.scopes, Scopes::from_iter([Scope::Admin, Scope::Tickets]));
    Ok(())
}

async fn keys_of_one_organization_belong_together(stage: Stage) -> Result<()> {
    let one = stage.member_of("acme").await?;
    let another = stage.member_of("acme").await?;
    let foreign = stage.member_of("ACME").await?;
    assert_eq!(one.organization_id, another.organization_id);
    assert_ne!(one.organization_id, foreign.organization_id);
    Ok(())
}

async fn an_unknown_an_expired_and_a_revoked_key_are_answered_alike(stage: Stage) -> Result<()> {
    assert_eq!(stage.resolve(&ApiKey::generate()?).await?.grant, None);

    let revoked = stage.member().await?;
    revoke(&stage.database, revoked.key_id).await?;
    assert_eq!(stage.resolve(&revoked.key).await?.grant, None);

    let mut short_lived = new_key("acme")?;
    short_lived.expires_at = Some(now().plus_millis(200));
    let short_lived = create(&stage.database, short_lived).await?;
    eventually("the key to expire", || async { Ok(stage.resolve(&short_lived.key).await?.grant.is_none()) })
        .await?;

    let mut expired = new_key("acme")?;
    expired.expires_at = Some(now().plus_millis(-1));
    let refused = create(&stage.database, expired).await;
    assert!(matches!(refused, Err(CreateKeyError::ExpiresInThePast(_))));
    Ok(())
}

async fn a_key_is_revoked_once(stage: Stage) -> Result<()> {
    let member = stage.member().await?;
    assert_eq!(revoke(&stage.database, member.key_id).await?, Revocation::Revoked);
    assert!(matches!(revoke(&stage.database, member.key_id).await?, Revocation::AlreadyRevoked(_)));
    assert_eq!(revoke(&stage.database, new_id()).await?, Revocation::Unknown);
    Ok(())
}

async fn the_use_of_a_key_is_recorded(stage: Stage) -> Result<()> {
    let created = create(&stage.database, new_key("acme")?).await?;
    assert!(!stage.recorded_use_of(created.id).await?);
    stage.resolve(&created.key).await?;
    eventually("the use to be recorded", || stage.recorded_use_of(created.id)).await
}

async fn keys_are_listed_newest_first_by_organization(stage: Stage) -> Result<()> {
    let first = create(&stage.database, new_key("acme")?).await?;
    let second = create(&stage.database, new_key("acme")?).await?;
    let other = create(&stage.database, new_key("other")?).await?;
    let ids = |keys: Vec<KeyRecord>| keys.into_iter().map(|key| key.id).collect::<Vec<_>>();
    assert_eq!(ids(list(&stage.database, None).await?), [other.id, second.id, first.id]);
    let acme = list(&stage.database, Some(OrganizationName::parse("acme")?)).await?;
    assert!(acme.iter().all(|key| key.organization == "acme" && key.name == "test"));
    assert_eq!(ids(acme), [second.id, first.id]);
    Ok(())
}

async fn the_bootstrap_key_is_stored_once_however_many_replicas_start(stage: Stage) -> Result<()> {
    let key = ApiKey::parse("sixteen-chars-ok")?;
    let organization = OrganizationName::parse("default")?;
    try_join_all((0..6).map(|_| bootstrap(&stage.database, &key, organization.clone()))).await?;
    let keys = list(&stage.database, None).await?;
    assert_eq!(keys.len(), 1);
    assert_eq!((keys[0].organization.as_str(), &keys[0].scopes), ("default", &Scopes::default_for_keys()));
    let grant = stage.resolve(&key).await?.grant;
    assert_eq!(grant.map(|grant| grant.key_id), Some(keys[0].id));
    Ok(())
}

async fn a_known_key_is_not_changed_by_the_bootstrap(stage: Stage) -> Result<()> {
    let member = stage.member_of("acme").await?;
    revoke(&stage.database, member.key_id).await?;
    bootstrap(&stage.database, &member.key, OrganizationName::parse("default")?).await?;
    let keys = list(&stage.database, None).await?;
    assert_eq!(keys.len(), 1);
    assert_eq!(keys[0].organization, "acme");
    assert_eq!(stage.resolve(&member.key).await?.grant, None, "revoked stays revoked");
    Ok(())
}

#[tokio::test]
async fn keys_are_resolved_for_services_only() -> Result<()> {
    let stage = Stage::on_sqlite().await?;
    let member = stage.member().await?;
    let path = "/internal/v1/keys/resolve";
    let body = format!(r#"{{"key_sha256":"{}"}}"#, member.key.hash());
    assert_eq!(stage.post(path, &for_member(&member, Scope::Admin), body).await?.status(), 401);
    for body in [r#"{"key_sha256":"abc"}"#, "{}", "no JSON"] {
        let claims = assay_platform::auth::ServiceClaims::Service;
        assert_eq!(stage.post(path, &claims, body.to_owned()).await?.status(), 400, "{body}");
    }
    Ok(())
}
