//! Signing in and out.

use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, RETRY_AFTER, USER_AGENT};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_contracts::console::{Session, SignInCredential, SignInOutcome};
use assay_contracts::ids::SessionId;
use assay_platform::auth::{ApiKey, RandomToken};
use assay_platform::runtime::now;
use assay_platform::web::query_pairs;

use super::Console;
use super::error::PageError;
use super::form::read_same_origin_form;
use super::respond::{page, redirect};
use super::session_form::CheckedForm;
use super::shell::Shell;
use super::viewer::{FORM_PURPOSE, PublicAddress, SESSION_COOKIE, SessionRequest, read_cookie};
use crate::app::begin_session;
use crate::domain::may_redirect_to;
use crate::metrics::{SignInResult, count_sign_in};

/// The cookie from which the token of the form is derived, because there is no session yet.
const FORM_COOKIE: &str = "assay-sign-in";
const FORM_COOKIE_SECONDS: i64 = 60 * 60;

/// The page adds the command that makes one.
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
    /// The token of a sign-in link that a program may have opened: a person must confirm it.
    link: Option<String>,
    link_fault: Option<&'static str>,
    key_fault: Option<String>,
}

/// What a person signs in with; `None` when it is malformed and needs no look-up.
enum SentCredential {
    Link(Option<RandomToken>),
    Key(Option<ApiKey>),
}

impl SentCredential {
    fn link(text: &str) -> Self {
        Self::Link(RandomToken::parse(text))
    }

    fn key(text: &str) -> Self {
        Self::Key(ApiKey::parse(text).ok().filter(|key| !key.is_mistyped()))
    }

    fn is_link(&self) -> bool {
        matches!(self, Self::Link(_))
    }

    /// Whether it could be found by trying: it is a key that an operator chose.
    fn is_guessable(&self) -> bool {
        matches!(self, Self::Key(Some(key)) if !key.is_generated())
    }

    /// What is sent of it: its hash.
    fn hashed(&self) -> Option<SignInCredential> {
        Some(match self {
            Self::Link(link) => SignInCredential::LinkSha256(link.as_ref()?.hash().to_string()),
            Self::Key(key) => SignInCredential::KeySha256(key.as_ref()?.hash().to_string()),
        })
    }
}

/// Shows the form. With `?token=` the address is a sign-in link, which signs in at once when a person opened it.
pub(crate) async fn show_form(
    request: HttpRequest,
    console: Data<Console>,
) -> Result<HttpResponse, PageError> {
    let query = query_pairs(&request, &["token", "back"])?;
    let back = query.get("back").filter(|path| may_redirect_to(path)).cloned().unwrap_or_default();
    let Some(token) = query.get("token") else {
        if SessionRequest::of(&request).await.is_ok() {
            return Ok(redirect(if back.is_empty() { "/console" } else { &back }));
        }
        return show(&request, &console, StatusCode::OK, |page| page.back = back);
    };
    if !is_opened_by_person(&request) {
        let link = token.clone();
        return show(&request, &console, StatusCode::OK, |page| page.link = Some(link));
    }
    attempt(&request, &console, SentCredential::link(token), "").await
}

/// Signs in with the form: by a key, or by a sign-in link that a person confirmed.
pub(crate) async fn sign_in(
    request: HttpRequest,
    payload: Payload,
    console: Data<Console>,
) -> Result<HttpResponse, PageError> {
    let fields = read_same_origin_form(&request, payload).await?;
    let is_of_form = |cookie: RandomToken| cookie.has_derived(FORM_PURPOSE, fields.get("csrf"));
    if !form_cookie(&request).is_some_and(is_of_form) {
        return Err(PageError::CsrfRejected(None));
    }
    let back = Some(fields.get("back")).filter(|path| may_redirect_to(path)).unwrap_or_default();
    let (link, key) = (fields.get("token"), fields.get("key").trim());
    if link.is_empty() && key.is_empty() {
        return show(&request, &console, StatusCode::BAD_REQUEST, |page| {
            page.back = back.to_owned();
            page.key_fault = Some(KEY_MISSING.to_owned());
        });
    }
    let sent = if link.is_empty() { SentCredential::key(key) } else { SentCredential::link(link) };
    attempt(&request, &console, sent, back).await
}

/// Begins a session, or shows the form again with what is wrong.
async fn attempt(
    request: &HttpRequest,
    console: &Console,
    sent: SentCredential,
    back: &str,
) -> Result<HttpResponse, PageError> {
    let (is_link, is_guessable) = (sent.is_link(), sent.is_guessable());
    if is_guessable && let Err(seconds) = console.failed_sign_ins.count_attempt(Instant::now()) {
        count_sign_in(is_link, SignInResult::TooMany);
        let mut response = show(request, console, StatusCode::TOO_MANY_REQUESTS, |page| {
            page.back = back.to_owned();
            page.key_fault = Some(format!("Too many attempts failed. Try again in {seconds} seconds."));
        })?;
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        return Ok(response);
    }
    let token = random_token()?;
    let user_agent =
        request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let outcome = match sent.hashed() {
        Some(credential) => begin_session(&console.services, credential, &token, user_agent).await,
        None => Ok(SignInOutcome::Refused),
    };
    if is_guessable && !matches!(outcome, Ok(SignInOutcome::Refused | SignInOutcome::ScopeMissing)) {
        console.failed_sign_ins.take_back_attempt();
    }
    let (result, fault) = match outcome? {
        SignInOutcome::Begun(session) => {
            count_sign_in(is_link, SignInResult::Begun);
            tracing::info!(session = %session.id, by_link = is_link, "signed in to the console");
            return Ok(signed_in(request, &session, &token, back));
        }
        SignInOutcome::ScopeMissing => (SignInResult::ScopeMissing, SCOPE_MISSING),
        SignInOutcome::Refused if is_link => (SignInResult::Refused, LINK_REFUSED),
        SignInOutcome::Refused => (SignInResult::Refused, KEY_REFUSED),
    };
    count_sign_in(is_link, result);
    show(request, console, StatusCode::FORBIDDEN, |page| {
        page.back = back.to_owned();
        if is_link {
            page.link_fault = Some(fault);
        } else {
            page.key_fault = Some(fault.to_owned());
        }
    })
}

fn signed_in(request: &HttpRequest, session: &Session, token: &RandomToken, back: &str) -> HttpResponse {
    let seconds = session.expires_at.millis_since(now()) / 1_000;
    let mut response = redirect(if back.is_empty() { "/console" } else { back });
    let headers = response.headers_mut();
    PublicAddress::of(request).set_cookie(headers, SESSION_COOKIE, token.reveal(), seconds);
    response
}

/// Whether a person opened the link outside of any page, by typing it or from a terminal: the browser then sends
/// `Sec-Fetch-Site: none`. A mail scanner, which sends no such header, must not use the link up, and a page of another site
/// must not sign a person in unnoticed. Over plain HTTP browsers send it to localhost only; elsewhere the person confirms.
fn is_opened_by_person(request: &HttpRequest) -> bool {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    *request.method() == actix_web::http::Method::GET
        && header("sec-purpose").is_none()
        && header("sec-fetch-site") == Some("none")
}

/// The random token in this browser's [`FORM_COOKIE`]; its tabs share it.
fn form_cookie(request: &HttpRequest) -> Option<RandomToken> {
    RandomToken::parse(read_cookie(request, FORM_COOKIE)?)
}

fn random_token() -> Result<RandomToken, PageError> {
    RandomToken::generate().map_err(|error| {
        tracing::error!(cause = %error, "sign-in is not possible");
        PageError::Internal
    })
}

fn show(
    request: &HttpRequest,
    console: &Console,
    status: StatusCode,
    fill: impl FnOnce(&mut SignInPage),
) -> Result<HttpResponse, PageError> {
    let token = form_cookie(request).map_or_else(random_token, Ok)?;
    let mut template = SignInPage {
        // The address of this page may contain a token: links to change the theme must not lead back to it.
        shell: Shell {
            path_and_query: "/console".to_owned(),
            ..Shell::signed_out(request, console, "Sign in")
        },
        form_token: token.derive(FORM_PURPOSE),
        back: String::new(),
        link: None,
        link_fault: None,
        key_fault: None,
    };
    fill(&mut template);
    let mut response = page(request, status, &template)?;
    let headers = response.headers_mut();
    PublicAddress::of(request).set_cookie(headers, FORM_COOKIE, token.reveal(), FORM_COOKIE_SECONDS);
    Ok(response)
}

pub(crate) async fn sign_out(CheckedForm { request, .. }: CheckedForm) -> Result<HttpResponse, PageError> {
    request.services().end_session(request.viewer.session.id).await?;
    let mut response = redirect("/console/sign-in");
    PublicAddress::of(&request.http).set_cookie(response.headers_mut(), SESSION_COOKIE, "", 0);
    Ok(response)
}

/// Ends another session of the organization.
pub(crate) async fn end_session(
    CheckedForm { request, .. }: CheckedForm,
    id: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id: SessionId = id.parse().map_err(|_| PageError::NotFound)?;
    request.services().end_session(id).await?;
    Ok(redirect("/console/keys?done=session-ended"))
}
