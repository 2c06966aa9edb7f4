//! Pages: the URL is the state, faults stand beside their fields, keys are shown once.

use anyhow::{Context as _, Result};
use assay_contracts::time::DAY_MILLIS;
use serde_json::json;

use crate::test_app::{TICKET, TestApp, listed, page_of};

#[tokio::test]
async fn list_requests_the_filters_of_its_url() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations", 200, listed(&["One", "Two"], 52, Some("next-page")));
    let path = "/console/conversations?from=2026-01-01&to=2026-01-31&charge=disputed&sort=axis";
    let page = app.get(&session, path).await?;
    assert_eq!(page.status, 200);
    let requested = app.services.requested_paths();
    let requested = requested.iter().find(|path| path.contains("limit=25")).context("no list")?;
    assert!(
        requested.contains("from=1767225600000&to=1769904000000&charge=disputed&sort=axis"),
        "{requested}"
    );
    assert!(page.text.contains("52 conversations match the filter") && page.text.contains("Rows 1–2 of 52"));
    let next = page.link("next-page").context("no next page")?;
    assert_eq!(next, format!("{path}&cursor=next-page&row=3"));
    let second = app.get(&session, &next).await?;
    assert!(second.text.contains("Rows 3–4 of 52"));
    assert_eq!(second.link("first-page").as_deref(), Some(path));
    assert_eq!(app.get(&session, path).await?.text, page.text, "a reload gives the same page");
    Ok(())
}

#[tokio::test]
async fn rows_carry_the_filter_to_the_conversation() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations", 200, listed(&["One"], 1, None));
    let text = app.get(&session, "/console/conversations?language=de&column=axis&sort=-axis").await?.text;
    assert!(text.contains("?language=de&#38;sort=-axis&#38;column=axis\""), "{text}");
    Ok(())
}

#[tokio::test]
async fn agents_of_rows_are_named() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let mut list = listed(&["One"], 1, None);
    list["data"][0]["ticket"]["agents"] = json!([
        { "id": TICKET, "external_id": "support-bot", "name": "Support Bot" },
        { "id": TICKET, "external_id": "night-bot", "name": "" },
    ]);
    app.services.answer("/internal/v1/evaluations", 200, list);
    let text = app.get(&session, "/console/conversations").await?.text;
    assert!(text.contains("Support Bot, night-bot"), "{text}");
    Ok(())
}

#[tokio::test]
async fn faults_of_filters_stand_beside_their_fields() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let page = app
        .get(&session, "/console/conversations?axis_min=9&from=yesterday&charge=maybe&subject=late")
        .await?;
    assert_eq!(page.status, 400);
    page.assert_has(&[
        "id=\"axis_min-fault\"",
        "name=\"axis_min\" inputmode=\"decimal\" aria-label=\"AXIS from\" value=\"9\" aria-invalid=\"true\" aria-describedby=\"axis_min-fault\"",
        "id=\"from-fault\"",
        "type=\"text\" value=\"yesterday\"",
        "id=\"charge-fault\"",
        "<input type=\"hidden\" name=\"charge\" value=\"maybe\">",
        "name=\"subject\" value=\"late\"",
    ]);
    assert!(app.services.requested_paths().iter().all(|path| !path.contains("limit=25")), "no list is read");
    Ok(())
}

#[tokio::test]
async fn empty_fields_of_a_form_are_removed_from_the_address() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let page = app.get(&session, "/console/conversations?subject=&axis_min=&charge=review&search=").await?;
    assert_eq!((page.status, page.location.as_str()), (303, "/console/conversations?charge=review"));
    Ok(())
}

#[tokio::test]
async fn filter_that_is_too_long_for_an_address_stays_in_the_form() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations", 200, listed(&["One"], 1, None));
    // As a form sends it, less than 8 KiB; with each space in three bytes it is more.
    let values: Vec<String> = (0..12).map(|at| format!("subject=w{at}{}", "+ab".repeat(180))).collect();
    let address = format!("/console/conversations?search=&{}", values.join("&"));
    assert!(address.len() < 8_192);
    let page = app.get(&session, &address).await?;
    assert_eq!(page.status, 400, "{}", page.location);
    let typed = format!("value=\"w11{}\"", " ab".repeat(180));
    page.assert_has(&["is too long: leave some values out", typed.as_str()]);
    Ok(())
}

#[tokio::test]
async fn cursor_of_another_list_is_a_fault() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.refuse("/internal/v1/evaluations", 400, "invalid-cursor");
    let page = app.get(&session, "/console/conversations?cursor=old").await?;
    assert_eq!(page.status, 400);
    assert!(page.text.contains("belongs to another list"));
    Ok(())
}

#[tokio::test]
async fn empty_list_shows_the_import_command() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations", 200, listed(&[], 0, None));
    assert!(app.get(&session, "/console/conversations").await?.text.contains("assay import --agents"));
    let filtered = app.get(&session, "/console/conversations?charge=review").await?.text;
    assert!(
        filtered.contains("No conversation matches the filter")
            && !filtered.contains("assay import --agents")
    );
    Ok(())
}

#[tokio::test]
async fn empty_pages_say_what_to_do_next() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    for (path, next) in [
        ("/console/exports", "assay export --kind axis"),
        ("/console/webhooks", "create the first one below"),
        ("/console/agents", "POST /v1/agents"),
        ("/console/imports", "assay import --agents"),
    ] {
        let page = app.get(&session, path).await?;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.text.contains(next), "{path}: {next}: {}", page.text);
    }
    Ok(())
}

#[tokio::test]
async fn new_key_is_shown_once() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let fields = [("name", "importer"), ("scope", "assess"), ("scope", "evaluations:read"), ("expires", "")];
    let page = app.send(&session, "/console/keys", "/console/keys", &fields).await?;
    assert_eq!(page.status, 201);
    let key =
        page.text.split("id=\"new-key\">").nth(1).context("no key")?.split('<').next().unwrap_or_default();
    let parsed = assay_platform::auth::ApiKey::parse(key)?;
    assert!(key.starts_with("asy_") && parsed.reveal() == key);
    let again = app.get(&session, "/console/keys").await?.text;
    assert!(!again.contains(key) && again.contains("importer") && again.contains("assess, evaluations:read"));
    Ok(())
}

#[tokio::test]
async fn key_is_revoked_by_its_button() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let text = app.get(&session, "/console/keys").await?.text;
    let path = text.split("action=\"").find(|part| part.contains("/revoke\"")).context("no key")?;
    let path = path.split('"').next().unwrap_or_default();
    let page = app.send(&session, "/console/keys", path, &[]).await?;
    assert_eq!((page.status, page.location.as_str()), (303, "/console/keys?done=revoked"));
    let text = app.get(&session, "/console/keys?done=revoked").await?.text;
    assert!(text.contains("The key is revoked") && text.contains("revoked <time"), "{text}");
    Ok(())
}

#[tokio::test]
async fn refused_key_form_keeps_what_was_typed() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let fields = [("name", "for \"Ann\""), ("expires", "2020-01-01")];
    let page = app.send(&session, "/console/keys", "/console/keys", &fields).await?;
    assert_eq!(page.status, 400);
    assert!(page.text.contains("value=\"for &#34;Ann&#34;\""), "{}", page.text);
    assert!(page.text.contains("id=\"expires-fault\"") && page.text.contains("id=\"scope-fault\""));
    let admin = [("name", "n"), ("scope", "assess"), ("scope", "admin")];
    let page = app.send(&session, "/console/keys", "/console/keys", &admin).await?;
    assert!(page.status == 400 && page.text.contains("id=\"scope-fault\""), "{}", page.text);
    let keys = assay_agent_registry::keys::list(&app.database, None).await?;
    assert_eq!(keys.len(), 1, "only the key of `TestApp::start`");
    Ok(())
}

#[tokio::test]
async fn keys_of_other_organizations_are_inaccessible() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let foreign = assay_agent_registry::keys::CreateKey {
        organization: assay_agent_registry::keys::OrganizationName::parse("other")?,
        name: assay_agent_registry::keys::KeyName::parse("foreign")?,
        scopes: assay_contracts::tenant::Scopes::default_for_keys(),
        expires_at: None,
    };
    let foreign = assay_agent_registry::keys::create(&app.database, foreign).await?;
    assert!(!app.get(&session, "/console/keys").await?.text.contains("foreign"));
    app.send(&session, "/console/keys", &format!("/console/keys/{}/revoke", foreign.id), &[]).await?;
    let keys = assay_agent_registry::keys::list(&app.database, None).await?;
    assert!(keys.iter().any(|key| key.id == foreign.id && key.revoked_at.is_none()));
    Ok(())
}

#[tokio::test]
async fn theme_choice_returns_to_the_page() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let page = app.get(&session, "/console/theme?to=dark&back=%2Fconsole%2Fagents").await?;
    assert_eq!((page.status, page.location.as_str()), (303, "/console/agents"));
    let evil = app.get(&session, "/console/theme?to=dark&back=%2F%2Fevil.test").await?;
    assert_eq!(evil.location, "/console");
    let agents = app.get(&format!("{session}; assay-theme=dark"), "/console/agents").await?;
    assert!(agents.text.contains("<html lang=\"en\" data-theme=\"dark\">"));
    Ok(())
}

#[tokio::test]
async fn unknown_conversation_is_not_found() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.refuse("/internal/v1/tickets", 404, "ticket-not-found");
    let page = app.get(&session, &format!("/console/conversations/{TICKET}")).await?;
    assert_eq!(page.status, 404);
    assert!(page.text.contains("There is no such page"));
    Ok(())
}

#[tokio::test]
async fn key_works_through_its_last_day() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let today = assay_platform::runtime::now().as_millis().div_euclid(DAY_MILLIS) * DAY_MILLIS;
    let day = date_field_text(today);
    let fields = [("name", "today"), ("scope", "assess"), ("expires", day.as_str())];
    let page = app.send(&session, "/console/keys", "/console/keys", &fields).await?;
    assert_eq!(page.status, 201, "{}", page.text);
    let keys = assay_agent_registry::keys::list(&app.database, None).await?;
    let key = keys.iter().find(|key| key.name == "today").context("no key")?;
    assert_eq!(key.expires_at.map(|at| at.as_millis()), Some(today + DAY_MILLIS));
    Ok(())
}

/// A day as a date field sends it.
fn date_field_text(millis: i64) -> String {
    let at = chrono::DateTime::from_timestamp_millis(millis).unwrap_or_default();
    at.format("%Y-%m-%d").to_string()
}

#[tokio::test]
async fn row_number_out_of_range_is_a_fault() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/evaluations", 200, listed(&["One"], 1, None));
    let page = app.get(&session, "/console/conversations?cursor=x&row=18446744073709551615").await?;
    assert_eq!(page.status, 400, "{}", page.text);
    assert!(page.text.contains("must be the number of a row"));
    Ok(())
}

#[tokio::test]
async fn emptied_description_of_a_webhook_is_sent() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_webhook();
    let path = &format!("/console/webhooks/{TICKET}");
    let fields = [
        ("url", "https://a.example"),
        ("events", "export.completed"),
        ("description", ""),
        ("axis_low_score_below", "3"),
    ];
    let changed = app.send(&session, path, path, &fields).await?;
    assert_eq!(changed.status, 303, "{}", changed.text);
    let bodies = app.services.bodies();
    assert!(bodies.iter().any(|body| body["description"] == ""), "{bodies:?}");
    Ok(())
}

#[tokio::test]
async fn refused_webhook_form_says_what_is_wrong_beside_each_field() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let names = ["url", "description", "events", "axis_low_score_below"];
    let errors: Vec<_> =
        names.iter().map(|name| json!({ "pointer": format!("/{name}"), "detail": "is wrong" })).collect();
    let problem = json!({ "status": 400, "title": "Invalid", "type": "urn:assay:problem:invalid-request",
        "code": "invalid-request", "errors": errors });
    app.services.answer("/internal/v1/webhooks?", 200, page_of(&[]));
    app.services.answer("/internal/v1/webhooks", 400, problem);
    let page = app.send(&session, "/console/webhooks", "/console/webhooks", &[("url", "x")]).await?;
    assert_eq!(page.status, 400);
    for name in names {
        let described = format!("aria-invalid=\"true\" aria-describedby=\"{name}-fault\"");
        let fault = format!("id=\"{name}-fault\"><span class=\"visually-hidden\">Error: </span>is wrong");
        assert!(page.text.contains(&described) && page.text.contains(&fault), "{name}: {}", page.text);
    }
    Ok(())
}
