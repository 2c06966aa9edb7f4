//! API keys, and the sessions of the console.

use actix_web::http::StatusCode;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::console::{KeyEntry, NewKeyRequest, SessionEntry};
use assay_contracts::ids::{ApiKeyId, SessionId};
use assay_contracts::tenant::{Scope, Scopes};
use assay_contracts::time::Timestamp;
use assay_platform::runtime::now;
use assay_platform::web::query_pairs;

use super::error::PageError;
use super::form::{Faults, Fields, query_of};
use super::kept_form::kept_fields;
use super::long_list::{MAX_ROWS, Pager, read_id, take_page};
use super::respond::{page, redirect};
use super::session_form::CheckedForm;
use super::shell::Shell;
use super::viewer::{SessionRequest, Viewer};
use crate::domain::{PageTime, Pairs, browser_name, parse_day, plus_days, with_query};

/// Maximum number of sessions on a page, which has the keys, too.
const MAX_SESSION_ROWS: usize = 25;

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyRow>,
    key_pages: Pager,
    /// What is wrong with the query.
    query_faults: Faults,
    sessions: Vec<SessionRow>,
    session_pages: Pager,
    scopes: Vec<ScopeChoice>,
    typed: Fields,
    faults: Faults,
    /// The key that was just created: shown once.
    created: Option<String>,
    notice: Option<&'static str>,
}

struct KeyRow {
    id: String,
    name: String,
    scopes: String,
    created: PageTime,
    last_used: Option<PageTime>,
    state: &'static str,
    ends: Option<PageTime>,
    is_active: bool,
}

struct SessionRow {
    id: String,
    browser: String,
    user_agent: String,
    /// The credential that began it, in words.
    signed_in_with: String,
    began: PageTime,
    last_used: PageTime,
    ends: PageTime,
    is_own: bool,
}

struct ScopeChoice {
    name: &'static str,
    allows: &'static str,
    is_checked: bool,
}

pub(crate) async fn list(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let notice = match query_pairs(&request.http, &[])?.get("done").map(String::as_str) {
        Some("revoked") => Some(
            "The key is revoked. Gateways may accept it for half a minute more, or a minute while agent-registry does not answer.",
        ),
        Some("session-ended") => Some("The session has ended."),
        _ => None,
    };
    show(&request, StatusCode::OK, |page| {
        page.notice = notice;
        page.typed = kept_fields(&request.http).unwrap_or_default();
    })
    .await
}

pub(crate) async fn create(CheckedForm { request, fields }: CheckedForm) -> Result<HttpResponse, PageError> {
    let (faults, created) = match new_key(&fields) {
        Err(faults) => (faults, None),
        Ok(new) => match request.services().create_key(&new).await {
            Ok(created) => (Faults::default(), Some(created.key)),
            Err(ClientError::ErrorStatus { problem: Some(problem), .. }) if !problem.errors.is_empty() => {
                (Faults::new(problem.errors), None)
            }
            Err(error) => return Err(error.into()),
        },
    };
    let status = if created.is_some() { StatusCode::CREATED } else { StatusCode::BAD_REQUEST };
    show(&request, status, |page| {
        page.faults = faults;
        if created.is_none() {
            page.typed = fields;
        }
        page.created = created;
    })
    .await
}

pub(crate) async fn revoke(
    CheckedForm { request, .. }: CheckedForm,
    id: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id: ApiKeyId = id.parse().map_err(|_| PageError::NotFound)?;
    request.services().revoke_key(id).await?;
    Ok(redirect("/console/keys?done=revoked"))
}

fn new_key(fields: &Fields) -> Result<NewKeyRequest, Faults> {
    let mut faults = Faults::default();
    let name = fields.get("name").trim().to_owned();
    if name.is_empty() {
        faults.add("name", "Say what the key is for.");
    }
    // A session does not have the scope `admin`, so it cannot create a key that has it.
    let allowed_scope = |name| Scope::from_name(name).filter(|scope| *scope != Scope::Admin);
    let scopes: Option<Scopes> = fields.all("scope").map(allowed_scope).collect();
    let scopes = scopes.filter(|scopes| !scopes.is_empty());
    if scopes.is_none() {
        faults.add("scope", "Choose at least one scope.");
    }
    let expires_at = match fields.get("expires") {
        "" => None,
        // The key works through its last day.
        text => match parse_day(text).map(|day| plus_days(day, 1)).filter(|end| *end > now()) {
            Some(end) => Some(end),
            None => {
                faults.add("expires", "Give today or a day to come, or leave it empty.");
                None
            }
        },
    };
    match scopes {
        Some(scopes) if faults.is_empty() => Ok(NewKeyRequest { name, scopes, expires_at }),
        _ => Err(faults),
    }
}

/// The key and the session after which the lists of the page begin; without one, a list begins with the newest.
struct Before {
    key: Option<ApiKeyId>,
    session: Option<SessionId>,
}

/// The key and the session that the query names, and the faults of the query.
fn read_before(request: &HttpRequest) -> (Before, Faults) {
    let query = query_of(request);
    let mut faults = Faults::of_parameters(&query, &["before", "sessions_before", "done"]);
    let key = read_id(&query, "before", &mut faults);
    let session = read_id(&query, "sessions_before", &mut faults);
    (Before { key, session }, faults)
}

/// The address of the page whose lists begin after this key and this session.
fn address_after(key: Option<String>, session: Option<String>) -> String {
    let pairs = [("before", key), ("sessions_before", session)];
    let pairs: Pairs = pairs.into_iter().filter_map(|(name, id)| Some((name.to_owned(), id?))).collect();
    with_query("/console/keys", &pairs)
}

async fn show(
    request: &SessionRequest,
    status: StatusCode,
    fill: impl FnOnce(&mut KeysPage),
) -> Result<HttpResponse, PageError> {
    let services = request.services();
    let (before, query_faults) = read_before(&request.http);
    let (keys, sessions) = futures_util::future::try_join(
        services.list_keys(before.key),
        services.list_sessions(before.session),
    )
    .await?;
    let (keys, last_key) = take_page(keys, MAX_ROWS, |key| key.id);
    let (sessions, last_session) = take_page(sessions, MAX_SESSION_ROWS, |session| session.id);
    let now = now();
    let status = if query_faults.is_empty() { status } else { StatusCode::BAD_REQUEST };
    let mut template = KeysPage {
        shell: Shell::new(request, "/console/keys", "Keys"),
        keys: keys.into_iter().map(|key| key_row(key, now)).collect(),
        key_pages: Pager::new(before.key, last_key, |key| {
            address_after(key, before.session.map(|id| id.to_string()))
        }),
        query_faults,
        sessions: sessions.into_iter().map(|entry| session_row(entry, &request.viewer)).collect(),
        session_pages: Pager::new(before.session, last_session, |session| {
            address_after(before.key.map(|id| id.to_string()), session) + "#h-sessions"
        }),
        scopes: Vec::new(),
        typed: Fields::default(),
        faults: Faults::default(),
        created: None,
        notice: None,
    };
    fill(&mut template);
    let is_new_form = template.typed.is_empty();
    let default = Scopes::default_for_keys();
    let choices = Scope::ALL.iter().filter(|scope| **scope != Scope::Admin).map(|&scope| ScopeChoice {
        name: scope.as_str(),
        allows: allows(scope),
        is_checked: if is_new_form {
            default.allows(scope)
        } else {
            template.typed.has("scope", scope.as_str())
        },
    });
    template.scopes = choices.collect();
    page(&request.http, status, &template)
}

/// What a key with the scope may do, in words.
fn allows(scope: Scope) -> &'static str {
    match scope {
        Scope::Assess => "submit conversations",
        Scope::Agents => "register AI agents",
        Scope::Tickets => "read and delete tickets",
        Scope::Exports => "create and download exports",
        Scope::Webhooks => "manage webhooks",
        Scope::EvaluationsRead => "read lists and summaries",
        Scope::TranscriptsRead => "read transcripts",
        Scope::Console => "sign in here, with everything that you can do",
        Scope::Admin => "administer",
    }
}

fn key_row(key: KeyEntry, now: Timestamp) -> KeyRow {
    let (state, ends, is_active) = match (key.revoked_at, key.expires_at) {
        (Some(at), _) => ("revoked", Some(at), false),
        (None, Some(at)) if at <= now => ("expired", Some(at), false),
        (None, Some(at)) => ("until", Some(at), true),
        (None, None) => ("active", None, true),
    };
    KeyRow {
        id: key.id.to_string(),
        name: key.name,
        scopes: key.scopes.to_string().replace(' ', ", "),
        created: PageTime::long(key.created_at),
        last_used: key.last_used_at.map(PageTime::long),
        state,
        ends: ends.map(PageTime::long),
        is_active,
    }
}

fn session_row(entry: SessionEntry, viewer: &Viewer) -> SessionRow {
    SessionRow {
        is_own: entry.id == viewer.session.id,
        id: entry.id.to_string(),
        browser: browser_name(&entry.browser),
        user_agent: entry.browser,
        signed_in_with: entry
            .key_name
            .map_or_else(|| "a one-time address".to_owned(), |name| format!("the key {name}")),
        began: PageTime::long(entry.created_at),
        last_used: PageTime::long(entry.last_used_at),
        ends: PageTime::long(entry.expires_at),
    }
}
