//! Signing in and out.

use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, RETRY_AFTER, SET_COOKIE, USER_AGENT};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_contracts::console::{Session, SignInOutcome};
use assay_contracts::ids::SessionId;
use assay_platform::auth::{ApiKey, RandomToken};
use assay_platform::runtime::now;
use assay_platform::web::query_pairs;

use super::Console;
use super::error::PageError;
use super::form::{Fields, fields, own_form};
use super::respond::{page, redirect};
use super::shell::Shell;
use super::viewer::{PublicAddress, SESSION_COOKIE, Viewer, cookie};
use crate::app::{Credential, begin_session, end_session};
use crate::domain::{is_local_path, is_same};

/// The cookie that the form repeats: there is no session yet whose token it could carry.
const FORM_COOKIE: &str = "assay-sign-in";
const FORM_SECONDS: i64 = 60 * 60;

const LINK_REFUSED: &str = "This address was used before, or it is older than an hour. Make another one:";
const KEY_REFUSED: &str = "Assay does not know this key: it may be mistyped, expired or revoked.";
const SCOPE_MISSING: &str = "This key may not open the console: it needs the scope `console`.";
const KEY_MISSING: &str = "Type an API key.";

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignInPage {
    shell: Shell,
    form_token: String,
    back: String,
    /// A one-time address that another site led to: a person has to confirm it.
    link: Option<String>,
    link_fault: Option<&'static str>,
    key_fault: Option<String>,
}

/// The form; with `?token=` a one-time address, which signs in at once when a person opened it.
pub(crate) async fn form(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, PageError> {
    let query = query_pairs(&request, &["token", "back"])?;
    let back = query.get("back").filter(|path| is_local_path(path)).cloned().unwrap_or_default();
    let Some(token) = query.get("token") else {
        if Viewer::of(&request, &console).await.is_ok() {
            return Ok(redirect("/console"));
        }
        return show(&request, &console, StatusCode::OK, |page| page.back = back);
    };
    if !is_opened_by_a_person(&request) {
        let link = token.clone();
        return show(&request, &console, StatusCode::OK, |page| page.link = Some(link));
    }
    let credential = RandomToken::parse(token).map(Credential::Link);
    attempt(&request, &console, credential, "").await
}

/// The form was sent: a key, or a one-time address that was confirmed.
pub(crate) async fn sign_in(
    request: HttpRequest,
    payload: Payload,
    console: Data<Console>,
) -> Result<HttpResponse, PageError> {
    let fields = fields(&request, payload).await?;
    let expected = cookie(&request, FORM_COOKIE).unwrap_or_default();
    if expected.is_empty() || !is_same(fields.get("csrf"), expected) {
        return Err(PageError::ForeignForm);
    }
    let back = Some(fields.get("back")).filter(|path| is_local_path(path)).unwrap_or_default();
    let key = fields.get("key").trim();
    if fields.get("token").is_empty() && key.is_empty() {
        return show(&request, &console, StatusCode::BAD_REQUEST, |page| {
            page.back = back.to_owned();
            page.key_fault = Some(KEY_MISSING.to_owned());
        });
    }
    attempt(&request, &console, credential_of(&fields), back).await
}

fn credential_of(fields: &Fields) -> Option<Credential> {
    let token = fields.get("token");
    if token.is_empty() {
        return ApiKey::parse(fields.get("key").trim()).ok().map(Credential::Key);
    }
    RandomToken::parse(token).map(Credential::Link)
}

/// Begins a session, or shows the form again with what is wrong.
async fn attempt(
    request: &HttpRequest,
    console: &Console,
    credential: Option<Credential>,
    back: &str,
) -> Result<HttpResponse, PageError> {
    if let Some(seconds) = console.failed_sign_ins.wait_seconds(Instant::now()) {
        let mut response = show(request, console, StatusCode::TOO_MANY_REQUESTS, |page| {
            page.key_fault = Some(format!("Too many attempts failed. Try again in {seconds} seconds."));
        })?;
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        return Ok(response);
    }
    let is_link =
        request.query_string().contains("token=") || matches!(credential, Some(Credential::Link(_)));
    let token = RandomToken::generate().map_err(|error| {
        tracing::error!(cause = %error, "sign-in is not possible");
        PageError::Internal
    })?;
    let browser = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let outcome = match credential {
        Some(credential) => begin_session(&console.services, &credential, &token, browser).await?,
        None => SignInOutcome::Refused,
    };
    if let SignInOutcome::Begun(session) = outcome {
        tracing::info!(session = %session.id, by_link = is_link, "signed in to the console");
        return Ok(signed_in(request, &session, &token, back));
    }
    console.failed_sign_ins.record(Instant::now());
    show(request, console, StatusCode::FORBIDDEN, |page| {
        page.back = back.to_owned();
        match (is_link, outcome) {
            (true, _) => page.link_fault = Some(LINK_REFUSED),
            (false, SignInOutcome::ScopeMissing) => page.key_fault = Some(SCOPE_MISSING.to_owned()),
            (false, _) => page.key_fault = Some(KEY_REFUSED.to_owned()),
        }
    })
}

fn signed_in(request: &HttpRequest, session: &Session, token: &RandomToken, back: &str) -> HttpResponse {
    let seconds = session.expires_at.millis_since(now()) / 1_000;
    let mut response = redirect(if back.is_empty() { "/console" } else { back });
    set_cookie(&mut response, &PublicAddress::of(request).cookie(SESSION_COOKIE, token.reveal(), seconds));
    response
}

/// Whether a person opened the address: typed it, or followed it in a terminal or on our own page. Mail scanners and pages of
/// others must not use it up or sign a person in unawares.
fn is_opened_by_a_person(request: &HttpRequest) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    *request.method() == actix_web::http::Method::GET
        && header("sec-purpose").is_none()
        && matches!(header("sec-fetch-site"), None | Some("none" | "same-origin"))
}

fn show(
    request: &HttpRequest,
    console: &Console,
    status: StatusCode,
    fill: impl FnOnce(&mut SignInPage),
) -> Result<HttpResponse, PageError> {
    let token = RandomToken::generate().map_err(|_| PageError::Internal)?;
    let mut template = SignInPage {
        shell: Shell::signed_out(request, console, "Sign in"),
        form_token: token.reveal().to_owned(),
        back: String::new(),
        link: None,
        link_fault: None,
        key_fault: None,
    };
    fill(&mut template);
    let mut response = page(request, status, &template)?;
    set_cookie(&mut response, &PublicAddress::of(request).cookie(FORM_COOKIE, token.reveal(), FORM_SECONDS));
    Ok(response)
}

/// Ends the session of the request.
pub(crate) async fn sign_out(
    request: HttpRequest,
    payload: Payload,
    console: Data<Console>,
) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    own_form(&request, payload, &viewer).await?;
    end_session(&console.services, &viewer.claims, viewer.session.id).await?;
    let mut response = redirect("/console/sign-in");
    set_cookie(&mut response, &PublicAddress::of(&request).cookie(SESSION_COOKIE, "", 0));
    Ok(response)
}

/// Ends another session of the organization.
pub(crate) async fn end(
    request: HttpRequest,
    payload: Payload,
    console: Data<Console>,
    id: Path<String>,
) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    own_form(&request, payload, &viewer).await?;
    let id: SessionId = id.parse().map_err(|_| PageError::NotFound)?;
    end_session(&console.services, &viewer.claims, id).await?;
    Ok(redirect("/console/keys?done=session-ended"))
}

fn set_cookie(response: &mut HttpResponse, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(SET_COOKIE, value);
    }
}
