//! Sessions of the console: begin, use, end.

use anyhow::{Context as _, Result};
use assay_agent_registry::console::{CreateSignInTokenError, create_sign_in_token};
use assay_agent_registry::keys::{OrganizationName, create, revoke};
use assay_contracts::console::{
    AgentList, BeginSession, FindSession, FoundSession, KeyList, Session, SessionList, SignInCredential,
    SignInOutcome,
};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_platform::auth::{ApiKey, RandomToken, ServiceClaims};
use assay_platform::runtime::new_id;
use assay_testkit::on_both_databases;
use futures_util::future::try_join_all;

use crate::test_app::{Credentials, TestApp, claims_of, new_key};

on_both_databases! { TestApp {
    sign_in_link_begins_one_session,
    sign_in_link_needs_an_existing_organization,
    sign_in_by_key_needs_the_scope_console,
    session_ends_with_its_key,
    session_is_not_found_by_another_token,
    sessions_are_listed_and_ended_within_the_organization,
    keys_are_managed_within_the_organization,
    lists_continue_before_an_id,
    new_key_has_only_scopes_of_its_creator,
    agents_are_listed_within_the_organization,
} }

async fn begin(app: &TestApp, credential: SignInCredential) -> Result<(SignInOutcome, RandomToken)> {
    let token = RandomToken::generate()?;
    let body =
        BeginSession { credential, token_sha256: token.hash().to_string(), browser: "Firefox\n".to_owned() };
    let body = serde_json::to_string(&body)?;
    let response = app.post("/internal/v1/console/sessions", &ServiceClaims::Service, body).await?;
    Ok((response.error_for_status()?.json().await?, token))
}

async fn begin_by_link(app: &TestApp, organization: &str) -> Result<(SignInOutcome, RandomToken)> {
    let link = create_sign_in_token(&app.database, OrganizationName::parse(organization)?).await?;
    begin(app, SignInCredential::LinkSha256(link.hash().to_string())).await
}

fn key_credential(key: &ApiKey) -> SignInCredential {
    SignInCredential::KeySha256(key.hash().to_string())
}

async fn find(app: &TestApp, token: &RandomToken) -> Result<Option<Session>> {
    let body = serde_json::to_string(&FindSession { token_sha256: token.hash().to_string() })?;
    let response = app.post("/internal/v1/console/sessions/find", &ServiceClaims::Service, body).await?;
    Ok(response.error_for_status()?.json::<FoundSession>().await?.session)
}

/// What the console calls with for a person who is signed in.
fn signed_in_claims_of(credentials: &Credentials) -> ServiceClaims {
    with_scopes(credentials, Scope::ALL.iter().copied().filter(|scope| *scope != Scope::Admin))
}

fn with_scopes(credentials: &Credentials, scopes: impl IntoIterator<Item = Scope>) -> ServiceClaims {
    let scopes = Scopes::from_iter(scopes);
    ServiceClaims::Tenant(Tenant { organization_id: credentials.organization_id, scopes })
}

async fn sign_in_link_begins_one_session(app: TestApp) -> Result<()> {
    let credentials = app.create_credentials("acme").await?;
    let link = create_sign_in_token(&app.database, OrganizationName::parse("acme")?).await?;
    let credential = SignInCredential::LinkSha256(link.hash().to_string());
    let begun = try_join_all((0..6).map(|_| begin(&app, credential.clone()))).await?;
    let begun: Vec<_> = begun.into_iter().filter(|(outcome, _)| *outcome != SignInOutcome::Refused).collect();
    assert_eq!(begun.len(), 1);
    let (SignInOutcome::Begun(session), token) = &begun[0] else { anyhow::bail!("{:?}", begun[0].0) };
    assert_eq!(
        (session.organization.as_str(), session.organization_id),
        ("acme", credentials.organization_id)
    );
    assert_eq!(find(&app, token).await?.as_ref(), Some(session));
    assert_eq!(begin(&app, credential).await?.0, SignInOutcome::Refused);
    Ok(())
}

async fn sign_in_link_needs_an_existing_organization(app: TestApp) -> Result<()> {
    let refused = create_sign_in_token(&app.database, OrganizationName::parse("nobody")?).await;
    assert!(matches!(refused, Err(CreateSignInTokenError::UnknownOrganization)));
    Ok(())
}

async fn sign_in_by_key_needs_the_scope_console(app: TestApp) -> Result<()> {
    let plain = app.create_credentials("acme").await?;
    assert_eq!(begin(&app, key_credential(&plain.key)).await?.0, SignInOutcome::ScopeMissing);
    assert_eq!(begin(&app, key_credential(&ApiKey::generate()?)).await?.0, SignInOutcome::Refused);
    let mut new = new_key("acme")?;
    new.scopes = Scopes::from_iter([Scope::Console]);
    let key = create(&app.database, new).await?;
    let (outcome, token) = begin(&app, key_credential(&key.key)).await?;
    assert!(matches!(outcome, SignInOutcome::Begun(_)));
    assert_eq!(find(&app, &token).await?.map(|session| session.organization_id), Some(plain.organization_id));
    Ok(())
}

async fn session_ends_with_its_key(app: TestApp) -> Result<()> {
    let mut new = new_key("acme")?;
    new.scopes = Scopes::from_iter([Scope::Console]);
    let key = create(&app.database, new).await?;
    let (_, token) = begin(&app, key_credential(&key.key)).await?;
    let (_, other) = begin_by_link(&app, "acme").await?;
    revoke(&app.database, key.id).await?;
    assert_eq!(find(&app, &token).await?, None);
    assert!(find(&app, &other).await?.is_some());
    Ok(())
}

async fn session_is_not_found_by_another_token(app: TestApp) -> Result<()> {
    app.create_credentials("acme").await?;
    begin_by_link(&app, "acme").await?;
    assert_eq!(find(&app, &RandomToken::generate()?).await?, None);
    Ok(())
}

async fn sessions_are_listed_and_ended_within_the_organization(app: TestApp) -> Result<()> {
    let (acme, other) = (app.create_credentials("acme").await?, app.create_credentials("other").await?);
    let (SignInOutcome::Begun(session), token) = begin_by_link(&app, "acme").await? else {
        anyhow::bail!("refused")
    };
    let list: SessionList =
        app.get("/internal/v1/console/sessions", &claims_of(&acme, Scope::Console)).await?.json().await?;
    assert_eq!(list.sessions.len(), 1);
    assert_eq!((list.sessions[0].id, list.sessions[0].browser.as_str()), (session.id, "Firefox"));
    let path = format!("/internal/v1/console/sessions/{}", session.id);
    assert_eq!(app.delete(&path, &claims_of(&other, Scope::Console)).await?.status(), 204);
    assert!(find(&app, &token).await?.is_some(), "another organization cannot end it");
    assert_eq!(app.delete(&path, &claims_of(&acme, Scope::Console)).await?.status(), 204);
    assert_eq!(find(&app, &token).await?, None);
    Ok(())
}

async fn keys_are_managed_within_the_organization(app: TestApp) -> Result<()> {
    let (acme, other) = (app.create_credentials("acme").await?, app.create_credentials("other").await?);
    let body = r#"{"name":"new","scopes":["assess"],"expires_at":null}"#.to_owned();
    let created = app.post("/internal/v1/keys", &signed_in_claims_of(&acme), body).await?;
    assert_eq!(created.status(), 201);
    let created: assay_contracts::console::NewKey = created.json().await?;
    let grant = app.resolve(&ApiKey::parse(&created.key)?).await?.grant.context("the key works")?;
    assert_eq!(grant.organization_id, acme.organization_id);
    let list: KeyList =
        app.get("/internal/v1/keys", &claims_of(&other, Scope::Console)).await?.json().await?;
    assert_eq!(list.keys.iter().map(|key| key.id).collect::<Vec<_>>(), [other.key_id]);
    let path = format!("/internal/v1/keys/{}", created.id);
    app.delete(&path, &claims_of(&other, Scope::Console)).await?;
    assert!(app.resolve(&ApiKey::parse(&created.key)?).await?.grant.is_some());
    app.delete(&path, &claims_of(&acme, Scope::Console)).await?;
    assert!(app.resolve(&ApiKey::parse(&created.key)?).await?.grant.is_none());
    for body in [
        r#"{"name":"","scopes":["assess"]}"#,
        r#"{"name":"n","scopes":[]}"#,
        r#"{"name":"n","scopes":["assess"],"expires_at":1}"#,
    ] {
        let refused = app.post("/internal/v1/keys", &signed_in_claims_of(&acme), body.to_owned()).await?;
        assert_eq!(refused.status(), 400, "{body}");
    }
    Ok(())
}

async fn new_key_has_only_scopes_of_its_creator(app: TestApp) -> Result<()> {
    let acme = app.create_credentials("acme").await?;
    let signed_in = signed_in_claims_of(&acme);
    let admin = with_scopes(&acme, Scope::ALL.iter().copied());
    for (creator, scopes, status) in [
        (&signed_in, r#"["assess","console"]"#, 201),
        (&signed_in, r#"["admin"]"#, 403),
        (&signed_in, r#"["assess","admin"]"#, 403),
        (&claims_of(&acme, Scope::Console), r#"["console"]"#, 201),
        (&claims_of(&acme, Scope::Console), r#"["transcripts:read"]"#, 403),
        (&admin, r#"["admin"]"#, 201),
    ] {
        let body = format!(r#"{{"name":"new","scopes":{scopes}}}"#);
        let response = app.post("/internal/v1/keys", creator, body).await?;
        assert_eq!(response.status(), status, "{scopes} by {creator:?}");
    }
    let keys = assay_agent_registry::keys::list(&app.database, None).await?;
    assert_eq!(keys.len(), 4, "the first key and three new ones: refused ones are not stored");
    Ok(())
}

async fn agents_are_listed_within_the_organization(app: TestApp) -> Result<()> {
    let (acme, other) = (app.create_credentials("acme").await?, app.create_credentials("other").await?);
    app.create_agent(&acme, r#"{"external_id":"a","name":"A"}"#).await?.error_for_status()?;
    for (credentials, expected) in [(&acme, 1), (&other, 0)] {
        let claims = claims_of(credentials, Scope::Agents);
        let list: AgentList = app.get("/internal/v1/agents", &claims).await?.json().await?;
        assert_eq!(list.agents.len(), expected);
    }
    Ok(())
}

async fn lists_continue_before_an_id(app: TestApp) -> Result<()> {
    let (acme, other) = (app.create_credentials("acme").await?, app.create_credentials("other").await?);
    app.create_agent(&other, r#"{"external_id":"x","name":"X"}"#).await?.error_for_status()?;
    for name in ["a", "b", "c"] {
        let body = format!(r#"{{"external_id":"{name}","name":"{name}"}}"#);
        app.create_agent(&acme, &body).await?.error_for_status()?;
        let body = format!(r#"{{"name":"{name}","scopes":["assess"],"expires_at":null}}"#);
        app.post("/internal/v1/keys", &signed_in_claims_of(&acme), body).await?.error_for_status()?;
    }
    let claims = signed_in_claims_of(&acme);
    let get = async |path: String| anyhow::Ok(app.get(&path, &claims).await?.error_for_status()?);
    let all: AgentList = get("/internal/v1/agents".to_owned()).await?.json().await?;
    let rest: AgentList =
        get(format!("/internal/v1/agents?before={}", all.agents[0].id)).await?.json().await?;
    assert_eq!((all.agents.len(), all.total, rest.total), (3, Some(3), Some(3)));
    assert_eq!(rest.agents, all.agents[1..]);
    let all: KeyList = get("/internal/v1/keys".to_owned()).await?.json().await?;
    let rest: KeyList = get(format!("/internal/v1/keys?before={}", all.keys[0].id)).await?.json().await?;
    assert_eq!((all.keys.len(), &rest.keys[..]), (4, &all.keys[1..]));
    for organization in ["acme", "other", "acme", "acme"] {
        begin_by_link(&app, organization).await?;
    }
    let sessions = "/internal/v1/console/sessions";
    let all: SessionList = get(sessions.to_owned()).await?.json().await?;
    let rest: SessionList = get(format!("{sessions}?before={}", all.sessions[0].id)).await?.json().await?;
    assert_eq!((all.sessions.len(), &rest.sessions[..]), (3, &all.sessions[1..]));
    for path in ["/internal/v1/keys", sessions] {
        let refused = app.get(&format!("{path}?before=x"), &claims_of(&acme, Scope::Console)).await?;
        assert_eq!(refused.status(), 400, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn console_routes_need_the_scope() -> Result<()> {
    let app = TestApp::on_sqlite().await?;
    let credentials = app.new_credentials().await?;
    let claims = ServiceClaims::Tenant(Tenant {
        organization_id: credentials.organization_id,
        scopes: Scopes::default_for_keys(),
    });
    for path in ["/internal/v1/keys", "/internal/v1/console/sessions"] {
        assert_eq!(app.get(path, &claims).await?.status(), 403, "{path}");
    }
    let id: assay_contracts::ids::SessionId = new_id();
    let path = format!("/internal/v1/console/sessions/{id}");
    assert_eq!(app.delete(&path, &claims).await?.status(), 403);
    Ok(())
}
