//! The person who is signed in, and the public address, both read from the request.

use actix_web::dev::Payload;
use actix_web::http::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use assay_contracts::console::Session;
use assay_contracts::internal::PUBLIC_BASE_URL_HEADER;
use assay_platform::auth::{RandomToken, ServiceClaims};
use futures_util::future::LocalBoxFuture;

use super::Console;
use super::error::PageError;
use crate::app::{OrganizationServices, claims_of, find_session};
use crate::domain::cookie_value;

/// The purpose that tokens of forms are derived for.
pub(crate) const FORM_PURPOSE: &str = "form";

/// A request of a person who is signed in.
pub(crate) struct SessionRequest {
    pub(crate) http: HttpRequest,
    pub(crate) console: Data<Console>,
    pub(crate) viewer: Viewer,
}

impl SessionRequest {
    /// The request with its session.
    ///
    /// # Errors
    /// [`PageError::SignedOut`] without one.
    pub(crate) async fn of(request: &HttpRequest) -> Result<Self, PageError> {
        let console = request.app_data::<Data<Console>>().cloned().ok_or(PageError::Internal)?;
        let viewer = Viewer::of(request, &console).await?;
        Ok(Self { http: request.clone(), console, viewer })
    }

    pub(crate) fn services(&self) -> OrganizationServices<'_> {
        OrganizationServices { services: &self.console.services, claims: &self.viewer.claims }
    }
}

impl FromRequest for SessionRequest {
    type Error = PageError;
    type Future = LocalBoxFuture<'static, Result<Self, PageError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Self::of(&request).await })
    }
}

/// A person who is signed in.
pub(crate) struct Viewer {
    pub(crate) session: Session,
    claims: ServiceClaims,
    token: RandomToken,
}

impl Viewer {
    async fn of(request: &HttpRequest, console: &Console) -> Result<Self, PageError> {
        let token = session_token(request).ok_or(PageError::SignedOut(None))?;
        let look_ups = &console.session_look_ups;
        let permit = look_ups.begin(token.hash()).map_err(|_| PageError::Unavailable(None))?;
        let found = find_session(&console.services, &token).await?;
        drop(permit);
        look_ups.end(token.hash(), found.is_some());
        let session = found.ok_or(PageError::SignedOut(None))?;
        Ok(Self { claims: claims_of(session.organization_id), session, token })
    }

    /// Token of the forms of this session, against forged requests.
    pub(crate) fn form_token(&self) -> String {
        self.token.derive(FORM_PURPOSE)
    }

    /// Whether this is the token of its forms.
    pub(crate) fn has_form_token(&self, value: &str) -> bool {
        self.token.has_derived(FORM_PURPOSE, value)
    }
}

/// The address under which browsers reach the console, as the gateway sends it.
pub(crate) struct PublicAddress {
    pub(crate) is_secure: bool,
    /// With the port.
    pub(crate) host: String,
    /// Scheme and authority.
    pub(crate) base_url: String,
}

impl PublicAddress {
    pub(crate) fn of(request: &HttpRequest) -> Self {
        let header = request.headers().get(PUBLIC_BASE_URL_HEADER).and_then(|value| value.to_str().ok());
        let base_url = header.unwrap_or("http://localhost").to_owned();
        let host = base_url.split_once("://").map_or("", |(_, host)| host).to_owned();
        Self { is_secure: base_url.starts_with("https://"), host, base_url }
    }

    /// The full name of a cookie: browsers accept one with `__Host-` only over TLS, for this host alone and all paths.
    pub(crate) fn cookie_name(&self, name: &str) -> String {
        if self.is_secure { format!("__Host-{name}") } else { name.to_owned() }
    }

    /// Sets a cookie for all paths.
    pub(crate) fn set_cookie(&self, headers: &mut HeaderMap, name: &str, value: &str, max_age_seconds: i64) {
        let pair = format!("{}={value}", self.cookie_name(name));
        self.set_cookie_under(headers, &pair, "/", max_age_seconds);
    }

    /// Sets a cookie, given as `name=value`, for a path; no script can read it, and no POST request of another site carries it.
    pub(crate) fn set_cookie_under(&self, headers: &mut HeaderMap, pair: &str, path: &str, seconds: i64) {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let cookie = format!("{pair}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            headers.append(SET_COOKIE, cookie);
        }
    }
}

pub(crate) const SESSION_COOKIE: &str = "assay-session";

fn session_token(request: &HttpRequest) -> Option<RandomToken> {
    RandomToken::parse(read_cookie(request, SESSION_COOKIE)?)
}

/// The value of a cookie of the console.
pub(crate) fn read_cookie<'r>(request: &'r HttpRequest, name: &str) -> Option<&'r str> {
    let name = PublicAddress::of(request).cookie_name(name);
    cookie_value(request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok()), &name)
}
