//! A form whose request failed: nothing that was typed is lost.

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::test_app::{Page, TICKET, TestApp, page_of};

/// The path of a form, its fields, and what its page shows of them.
type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], &'c [&'c str]);

/// Sends a form with the cookie and the token of a session that has ended.
async fn send_too_late(app: &TestApp, path: &str, fields: &[(&str, &str)]) -> Result<Page> {
    let ended = app.sign_in().await?;
    let token = app.get(&ended, "/console/keys").await?.form_token()?;
    app.send_raw(&ended, "/console/sign-out", &[("csrf", token.as_str())]).await?;
    let fields: Vec<(&str, &str)> = fields.iter().copied().chain([("csrf", token.as_str())]).collect();
    app.send_raw(&ended, path, &fields).await
}

#[tokio::test]
async fn form_shows_what_was_typed_before_the_session_ended() -> Result<()> {
    let app = TestApp::start().await?;
    app.answer_all();
    let key = [("name", "for \"Ann\"; all"), ("scope", "tickets"), ("expires", "2099-01-31")];
    let webhook =
        [("url", "https://a.example/?x=1"), ("events", "export.completed"), ("description", "Data")];
    let export = [("kind", "resolution_audit"), ("charge", "disputed")];
    let cases: [Case; 3] = [
        (
            "/console/keys",
            &key,
            &["value=\"for &#34;Ann&#34;; all\"", "value=\"tickets\" checked", "value=\"2099-01-31\""],
        ),
        (
            "/console/webhooks",
            &webhook,
            &["value=\"https://a.example/?x=1\"", "value=\"export.completed\" checked", "value=\"Data\""],
        ),
        (
            "/console/exports",
            &export,
            &["value=\"resolution_audit\" required checked", "name=\"charge\" value=\"disputed\""],
        ),
    ];
    for (path, fields, shown) in cases {
        let refused = send_too_late(&app, path, fields).await?;
        let back = format!("/console/sign-in?back={}", path.replace('/', "%2F"));
        assert_eq!((refused.status, refused.location.as_str()), (303, back.as_str()));
        let kept = refused.cookie("assay-form").context("nothing is kept")?;
        assert!(!kept.contains("csrf"), "{kept}");
        let session = app.sign_in().await?;
        let page = app.get(&format!("{session}; {kept}"), path).await?;
        for expected in shown.iter().chain(&["id=\"refilled\""]) {
            assert!(page.text.contains(expected), "{path}: {expected}: {}", page.text);
        }
        assert_eq!(page.cookie("assay-form").as_deref(), Some("assay-form="), "it is shown once");
        let other = app.get(&format!("{session}; {kept}"), "/console/agents").await?;
        assert!(!other.text.contains("id=\"refilled\"") && other.cookie("assay-form").is_none());
    }
    Ok(())
}

#[tokio::test]
async fn form_of_an_earlier_session_is_kept() -> Result<()> {
    let app = TestApp::start().await?;
    let (old, new) = (app.sign_in().await?, app.sign_in().await?);
    let token = app.get(&old, "/console/keys").await?.form_token()?;
    let fields = [("csrf", token.as_str()), ("name", "importer"), ("scope", "assess")];
    let refused = app.send_raw(&new, "/console/keys", &fields).await?;
    assert_eq!((refused.status, refused.link("form").as_deref()), (403, Some("/console/keys")));
    let kept = refused.cookie("assay-form").context("nothing is kept")?;
    let text = app.get(&format!("{new}; {kept}"), "/console/keys").await?.text;
    assert!(text.contains("value=\"importer\""), "{text}");
    Ok(())
}

#[tokio::test]
async fn button_and_form_of_another_site_are_not_kept() -> Result<()> {
    let app = TestApp::start().await?;
    let refused = send_too_late(&app, "/console/sign-out", &[]).await?;
    assert_eq!((refused.status, refused.location.as_str()), (303, "/console/sign-in?back=%2Fconsole"));
    assert_eq!(refused.cookie("assay-form"), None);
    let request = app.request(reqwest::Method::POST, "/console/keys")?.header("sec-fetch-site", "cross-site");
    let refused =
        crate::test_app::page(crate::test_app::with_form(request, &[("name", "n")]).send().await?).await?;
    assert_eq!((refused.status, refused.cookie("assay-form")), (403, None));
    Ok(())
}

#[tokio::test]
async fn form_that_a_service_does_not_answer_is_kept() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.services.answer("/internal/v1/webhooks?", 200, page_of(&[]));
    app.services.answer("/internal/v1/webhooks", 503, json!({}));
    let fields = [("url", "https://a.example/?x=1"), ("events", "export.completed"), ("description", "Data")];
    let refused = app.send(&session, "/console/webhooks", "/console/webhooks", &fields).await?;
    assert_eq!((refused.status, refused.link("form").as_deref()), (503, Some("/console/webhooks")));
    assert!(refused.text.contains("What you typed is kept"), "{}", refused.text);
    let kept = refused.cookie("assay-form").context("nothing is kept")?;
    let page = app.get(&format!("{session}; {kept}"), "/console/webhooks").await?;
    page.assert_has(&["value=\"https://a.example/?x=1\"", "value=\"Data\"", "id=\"refilled\""]);
    Ok(())
}

#[tokio::test]
async fn form_beyond_the_limits_of_fields_or_text_is_not_kept() -> Result<()> {
    let app = TestApp::start().await?;
    let fields = [("a", ""); 20_000];
    let refused = send_too_late(&app, "/console/keys", &fields).await?;
    assert_eq!((refused.status, refused.cookie("assay-form")), (400, None));
    assert!(refused.text.len() < 10_000, "{} bytes for fields that nobody typed", refused.text.len());
    let text = "x".repeat(20_000);
    let refused = send_too_late(&app, "/console/keys", &[("name", text.as_str())]).await?;
    assert_eq!((refused.status, refused.cookie("assay-form")), (303, None));
    Ok(())
}

/// More than a cookie holds.
fn long_name() -> String {
    "\u{540d}".repeat(1_000)
}

/// What was typed, from the hidden fields of a page; the address to which they are sent.
fn fields_of(page: &Page) -> Result<(String, Vec<(String, String)>)> {
    let form = page.text.split_once("id=\"typed\">").context("no form with what was typed")?;
    let address = form.0.rsplit_once("action=\"").and_then(|(_, rest)| rest.split_once('"'));
    let fields =
        form.1.split_once("</form>").context("no end")?.0.split("<input type=\"hidden\" name=\"").skip(1);
    let field = |text: &str| {
        let (name, rest) = text.split_once("\" value=\"")?;
        Some((name.to_owned(), rest.split_once('"')?.0.to_owned()))
    };
    Ok((address.context("no address")?.0.to_owned(), fields.filter_map(field).collect()))
}

/// Presses the button of such a page.
async fn press(app: &TestApp, cookie: &str, page: &Page) -> Result<Page> {
    let (address, fields) = fields_of(page)?;
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    app.send_raw(cookie, &address, &fields).await
}

#[tokio::test]
async fn form_that_is_too_long_for_a_cookie_is_kept_on_its_page() -> Result<()> {
    let app = TestApp::start().await?;
    let long = long_name();
    let fields = [("external_id", "bot"), ("name", long.as_str())];
    let ended = send_too_late(&app, "/console/agents", &fields).await?;
    assert_eq!((ended.status, ended.cookie("assay-form")), (403, None));
    ended.assert_has(&[
        "Your session has ended",
        "this page alone has what you typed",
        "id=\"sign-in-link\"",
    ]);
    let again = press(&app, "", &ended).await?;
    assert_eq!((again.status, fields_of(&again)?), (403, fields_of(&ended)?), "still not signed in");
    let session = app.sign_in().await?;
    let page = press(&app, &session, &ended).await?;
    assert_eq!(page.status, 200, "{}", page.text);
    page.assert_has(&[format!("value=\"{long}\""), "value=\"bot\"".to_owned(), "id=\"refilled\"".to_owned()]);
    assert!(page.text.contains("No agent is registered yet"), "nothing was done: {}", page.text);
    let foreign = app.send_raw(&session, "/console/agents", &[("csrf", "old"), ("name", &long)]).await?;
    assert_eq!((foreign.status, foreign.cookie("assay-form")), (403, None));
    assert_eq!(press(&app, &session, &foreign).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn long_form_that_a_service_does_not_answer_is_kept_on_its_page() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    app.answer_all();
    app.answer_webhook();
    let (list, one) = ("/console/webhooks".to_owned(), format!("/console/webhooks/{TICKET}"));
    let long = long_name();
    let fields =
        [("url", "https://a.example/"), ("events", "export.completed"), ("description", long.as_str())];
    for path in [list, one] {
        let token = app.get(&session, &path).await?.form_token()?;
        let sent: Vec<_> = fields.iter().copied().chain([("csrf", token.as_str())]).collect();
        app.services.answer(&path.replace("/console", "/internal/v1"), 503, json!({}));
        let refused = app.send_raw(&session, &path, &sent).await?;
        assert_eq!((refused.status, refused.cookie("assay-form")), (503, None), "{path}");
        assert_eq!(press(&app, &session, &refused).await?.status, 503, "{path}: the service is still away");
        app.answer_all();
        app.answer_webhook();
        let page = press(&app, &session, &refused).await?;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        assert!(page.text.contains(&format!("value=\"{long}\"")), "{path}: {}", page.text);
    }
    Ok(())
}

#[tokio::test]
async fn form_is_refilled_only_for_its_own_site_and_a_page_with_a_form() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let sent = async |path: &str, site: &str| {
        let request = app.request(reqwest::Method::POST, path)?.header("cookie", &session);
        let request = crate::test_app::with_form(request.header("sec-fetch-site", site), &[("name", "n")]);
        anyhow::Ok(request.send().await?.status().as_u16())
    };
    for (path, site, status) in [
        ("/console/typed/keys", "same-origin", 200),
        ("/console/typed/keys", "cross-site", 403),
        ("/console/typed/sign-out", "same-origin", 404),
        ("/console/typed/nothing", "same-origin", 404),
        ("/console/typed/webhooks/x", "same-origin", 404),
    ] {
        assert_eq!(sent(path, site).await?, status, "{path} from {site}");
    }
    let keys = assay_agent_registry::keys::list(&app.database, None).await?;
    assert!(keys.iter().all(|key| key.name != "n"), "a key was made");
    Ok(())
}
