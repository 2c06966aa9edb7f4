//! Signing in and out, and the tokens of forms.

use anyhow::{Context as _, Result};
use assay_contracts::tenant::Scope;
use assay_platform::auth::ApiKey;
use reqwest::Method;

use crate::test_app::{ORGANIZATION, TestApp, page, with_form};

/// A key like those that operators choose: it could be guessed.
const CHOSEN_KEY: &str = "a-key-that-somebody-made-up-and-guesses";

#[tokio::test]
async fn sign_in_link_works_once() -> Result<()> {
    let app = TestApp::start().await?;
    let link = app.sign_in_link().await?;
    let first = app.open(&link).await?;
    assert_eq!((first.status, first.location.as_str()), (303, "/console"));
    let cookie = &first.cookies[0];
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert!(!cookie.contains("Secure"), "over plain HTTP a secure cookie would be lost: {cookie}");
    let second = app.open(&link).await?;
    assert_eq!(second.status, 403);
    assert!(second.cookie("assay-session").is_none());
    assert!(second.text.contains("used before"));
    Ok(())
}

#[tokio::test]
async fn session_cookie_is_bound_to_the_host_under_tls() -> Result<()> {
    let app = TestApp::start().await?;
    let base = "https://assay.test";
    let opened =
        app.request_under(base, Method::GET, &app.sign_in_link().await?)?.header("sec-fetch-site", "none");
    let signed_in = page(opened.send().await?).await?;
    let cookie = signed_in.cookies.first().context("no cookie")?;
    assert!(cookie.starts_with("__Host-assay-session="), "{cookie}");
    assert!(
        cookie.contains("; Secure") && cookie.contains("Path=/;") && !cookie.contains("Domain"),
        "{cookie}"
    );
    let session = signed_in.cookie("__Host-assay-session").context("no session")?;
    let keys = app.request_under(base, Method::GET, "/console/keys")?.header("cookie", &session);
    assert_eq!(keys.send().await?.status(), 200);
    Ok(())
}

#[tokio::test]
async fn link_that_no_person_opened_needs_a_confirmation() -> Result<()> {
    let app = TestApp::start().await?;
    let link = app.sign_in_link().await?;
    // Mail scanners do not send `Sec-Fetch-Site`, nor do browsers over plain HTTP.
    let unconfirmed: [&[(&str, &str)]; 6] = [
        &[],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-site", "none"), ("sec-purpose", "prefetch")],
        &[("sec-fetch-site", "")],
    ];
    for headers in unconfirmed {
        let request = app.request(Method::GET, &link)?;
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let shown = page(request.send().await?).await?;
        assert_eq!(shown.status, 200);
        assert!(shown.cookie("assay-session").is_none() && shown.text.contains("id=\"confirm-link\""));
    }
    let head = app.request(Method::HEAD, &link)?.header("sec-fetch-site", "none").send().await?;
    assert_eq!(head.status(), 200);
    let shown =
        page(app.request(Method::GET, &link)?.header("sec-fetch-site", "cross-site").send().await?).await?;
    let cookie = shown.cookie("assay-sign-in").context("no cookie of the form")?;
    let (token, link) = (shown.form_token()?, link.split_once('=').context("no token")?.1.to_owned());
    let signed_in = app.send_raw(&cookie, "/console/sign-in", &[("csrf", &token), ("token", &link)]).await?;
    assert_eq!(signed_in.status, 303);
    assert!(signed_in.cookie("assay-session").is_some(), "the requests before did not use it up");
    Ok(())
}

#[tokio::test]
async fn key_needs_the_scope_console() -> Result<()> {
    let app = TestApp::start().await?;
    let form = app.sign_in_form().await?;
    let attempt = async |key: &str| app.sign_in_with(&form, key, "/console/keys").await;
    let plain = app.create_key(&[Scope::Assess, Scope::Admin]).await?;
    let refused = attempt(plain.reveal()).await?;
    assert_eq!(refused.status, 403);
    assert!(refused.text.contains("needs the scope"));
    assert!(!refused.text.contains(plain.reveal()), "a key is never sent back");
    for wrong in [ApiKey::generate()?.reveal(), "asy_mistyped", CHOSEN_KEY] {
        let refused = attempt(wrong).await?;
        assert!(refused.status == 403 && refused.text.contains("does not know this key"), "{wrong}");
    }
    let key = app.create_key(&[Scope::Console]).await?;
    let signed_in = attempt(key.reveal()).await?;
    assert_eq!((signed_in.status, signed_in.location.as_str()), (303, "/console/keys"));
    Ok(())
}

#[tokio::test]
async fn session_ends_with_its_key() -> Result<()> {
    let app = TestApp::start().await?;
    let form = app.sign_in_form().await?;
    let key = app.create_key(&[Scope::Console]).await?;
    let signed_in = app.sign_in_with(&form, key.reveal(), "").await?;
    let session = signed_in.cookie("assay-session").context("no session")?;
    assert_eq!(app.get(&session, "/console/keys").await?.status, 200);
    let keys = assay_agent_registry::keys::list(&app.database, None).await?;
    assay_agent_registry::keys::revoke(&app.database, keys[0].id).await?;
    assert_eq!(app.get(&session, "/console/keys").await?.status, 303);
    Ok(())
}

#[tokio::test]
async fn signing_out_ends_the_session() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let out = app.send(&session, "/console/keys", "/console/sign-out", &[]).await?;
    assert_eq!((out.status, out.location.as_str()), (303, "/console/sign-in"));
    let after = app.get(&session, "/console/keys?done=revoked").await?;
    assert_eq!(after.status, 303);
    assert_eq!(after.location, "/console/sign-in?back=%2Fconsole%2Fkeys%3Fdone%3Drevoked");
    Ok(())
}

#[tokio::test]
async fn other_sessions_can_be_ended() -> Result<()> {
    let app = TestApp::start().await?;
    let (one, other) = (app.sign_in().await?, app.sign_in().await?);
    let keys = app.get(&one, "/console/keys").await?;
    assert!(keys.text.contains("this session"));
    let end = keys.text.split("action=\"/console/sessions/").nth(1).context("one other session")?;
    let path = format!("/console/sessions/{}", end.split('"').next().context("address")?);
    assert_eq!(app.send(&one, "/console/keys", &path, &[]).await?.status, 303);
    assert_eq!(app.get(&other, "/console/keys").await?.status, 303);
    assert_eq!(app.get(&one, "/console/keys").await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn form_without_the_token_of_the_session_is_refused() -> Result<()> {
    let app = TestApp::start().await?;
    let (session, other) = (app.sign_in().await?, app.sign_in().await?);
    let foreign = app.get(&other, "/console/keys").await?.form_token()?;
    for token in ["", "wrong", foreign.as_str()] {
        for path in ["/console/keys", "/console/sign-out", "/console/exports", "/console/webhooks"] {
            let refused =
                app.send_raw(&session, path, &[("csrf", token), ("name", "x"), ("scope", "assess")]).await?;
            assert_eq!(refused.status, 403, "{path} with {token}");
        }
    }
    assert_eq!(app.get(&session, "/console/keys").await?.status, 200, "still signed in");
    Ok(())
}

#[tokio::test]
async fn form_from_another_site_is_refused() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let token = app.get(&session, "/console/keys").await?.form_token()?;
    for (name, value, status) in [
        ("sec-fetch-site", "cross-site", 403),
        ("sec-fetch-site", "same-site", 403),
        ("origin", "http://evil.test", 403),
        ("origin", "null", 403),
        ("origin", "http://assay.test", 201),
        ("sec-fetch-site", "same-origin", 201),
    ] {
        let fields = [("csrf", token.as_str()), ("name", "n"), ("scope", "assess")];
        let request =
            app.request(Method::POST, "/console/keys")?.header("cookie", &session).header(name, value);
        assert_eq!(with_form(request, &fields).send().await?.status(), status, "{name}: {value}");
    }
    Ok(())
}

#[tokio::test]
async fn failed_sign_ins_with_chosen_keys_are_limited() -> Result<()> {
    let app = TestApp::with_failed_sign_in_limit(3).await?;
    let form = app.sign_in_form().await?;
    let attempt = async |key: &str| app.sign_in_with(&form, key, "/console/keys").await;
    // Generated and malformed keys are not counted, nor are links.
    for _ in 0..5 {
        for wrong in [ApiKey::generate()?.reveal(), "asy_mistyped-mistyped-mistyped-mistyped", "short"] {
            assert_eq!(attempt(wrong).await?.status, 403);
        }
        assert_eq!(app.open("/console/sign-in?token=AAAA").await?.status, 403);
    }
    let guesses = (0..6).map(|number| format!("{CHOSEN_KEY}-{number}")).collect::<Vec<_>>();
    let answers = futures_util::future::try_join_all(guesses.iter().map(|guess| attempt(guess))).await?;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [403, 403, 403, 429, 429, 429], "concurrent attempts share the limit");
    let limited = answers.iter().find(|answer| answer.status == 429).context("none")?;
    assert!(limited.headers.contains_key("retry-after"));
    assert!(limited.text.contains("name=\"back\" value=\"/console/keys\""), "{}", limited.text);
    // Links and generated keys still sign in.
    assert_eq!(app.open(&app.sign_in_link().await?).await?.status, 303);
    let key = app.create_key(&[Scope::Console]).await?;
    assert_eq!(attempt(key.reveal()).await?.status, 303);
    Ok(())
}

#[tokio::test]
async fn tabs_of_one_browser_share_the_sign_in_form() -> Result<()> {
    let app = TestApp::start().await?;
    let form = app.sign_in_form().await?;
    let other = app.get(&form.0, "/console/sign-in").await?;
    assert_eq!(other.cookie("assay-sign-in").as_ref(), Some(&form.0));
    let key = app.create_key(&[Scope::Console]).await?;
    assert_eq!(app.sign_in_with(&form, key.reveal(), "").await?.status, 303);
    let forged = app.get("assay-sign-in=chosen-by-another-site", "/console/sign-in").await?;
    assert_ne!(forged.cookie("assay-sign-in").as_deref(), Some("assay-sign-in=chosen-by-another-site"));
    Ok(())
}

#[tokio::test]
async fn signing_in_leads_back_to_pages_only() -> Result<()> {
    let app = TestApp::start().await?;
    let key = app.create_key(&[Scope::Console]).await?;
    for (back, leads_to) in [
        ("/console/agents", "/console/agents"),
        ("/console/sign-in?token=AAAA", "/console"),
        ("/console/sign%2Din?token=AAAA", "/console"),
        ("/console/theme?to=dark", "/console"),
    ] {
        let form = app.sign_in_form().await?;
        assert_eq!(app.sign_in_with(&form, key.reveal(), back).await?.location, leads_to, "{back}");
    }
    Ok(())
}

#[tokio::test]
async fn organization_name_is_escaped() -> Result<()> {
    let (app, session) = TestApp::signed_in().await?;
    let keys = app.get(&session, "/console/keys").await?;
    assert!(!keys.text.contains(ORGANIZATION) && keys.text.contains("Pinwright &#60;b&#62;&#38;"));
    Ok(())
}
