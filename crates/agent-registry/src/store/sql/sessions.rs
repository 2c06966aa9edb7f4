//! Sign-in links and sessions of the console.

use assay_contracts::console::{Session, SessionEntry};
use assay_contracts::ids::{ApiKeyId, OrganizationId, SessionId};
use assay_contracts::time::Timestamp;
use assay_platform::auth::TokenHash;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::Connection;
use super::schema::{api_keys, console_links, console_sessions, organizations};
use crate::domain::{ActiveSession, OrganizationName, SignIn};
use crate::store::{MAX_LISTED_SESSIONS, SessionToStore};

/// Leaves the active ones of sessions that are joined with `api_keys`. A macro, because the types of the queries differ.
macro_rules! only_active {
    ($sessions:expr, $idle_since:expr, $now:expr) => {{
        let key_is_unexpired = api_keys::expires_at.is_null().or(api_keys::expires_at.gt($now.as_millis()));
        $sessions
            .filter(console_sessions::expires_at.gt($now.as_millis()))
            .filter(console_sessions::last_used_at.gt($idle_since.as_millis()))
            // A session without a key passes, too: its columns of `api_keys` are NULL.
            .filter(api_keys::revoked_at.is_null().and(key_is_unexpired))
    }};
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = console_sessions)]
struct SessionRow {
    id: StoredId,
    organization_id: StoredId,
    #[diesel(select_expression = organizations::name)]
    organization: String,
    last_used_at: i64,
    expires_at: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = console_sessions)]
struct EntryRow {
    id: StoredId,
    browser: String,
    #[diesel(select_expression = api_keys::name.nullable())]
    key_name: Option<String>,
    created_at: i64,
    last_used_at: i64,
    expires_at: i64,
}

pub fn create_sign_in_link(
    connection: &mut Connection,
    organization: &OrganizationName,
    token: &TokenHash,
    expires_at: Timestamp,
) -> Result<bool, DatabaseError> {
    let named = organizations::table.filter(organizations::name.eq(organization.as_str()));
    let id: Option<StoredId> = named.select(organizations::id).first(connection).optional()?;
    let Some(id) = id else { return Ok(false) };
    diesel::insert_into(console_links::table)
        .values((
            console_links::token_sha256.eq(token.as_bytes().as_slice()),
            console_links::organization_id.eq(id),
            console_links::expires_at.eq(expires_at.as_millis()),
        ))
        .execute(connection)?;
    Ok(true)
}

/// Call inside a write transaction: of two requests with the same sign-in link only one gets a session.
pub fn begin(connection: &mut Connection, new: &SessionToStore) -> Result<Option<Session>, DatabaseError> {
    let owner: Option<(StoredId, Option<ApiKeyId>)> = match &new.sign_in {
        SignIn::Link(token) => take_sign_in_link(connection, token, new.created_at)?.map(|id| (id, None)),
        SignIn::Key { id, organization_id } => Some((StoredId::of(*organization_id), Some(*id))),
    };
    let Some((organization_id, key_id)) = owner else { return Ok(None) };
    diesel::insert_into(console_sessions::table)
        .values((
            console_sessions::id.eq(StoredId::of(new.id)),
            console_sessions::organization_id.eq(organization_id),
            console_sessions::api_key_id.eq(key_id.map(StoredId::of)),
            console_sessions::token_sha256.eq(new.token.as_bytes().as_slice()),
            console_sessions::browser.eq(&new.browser),
            console_sessions::created_at.eq(new.created_at.as_millis()),
            console_sessions::last_used_at.eq(new.created_at.as_millis()),
            console_sessions::expires_at.eq(new.expires_at.as_millis()),
        ))
        .execute(connection)?;
    let row: SessionRow = console_sessions::table
        .inner_join(organizations::table)
        .filter(console_sessions::id.eq(StoredId::of(new.id)))
        .select(SessionRow::as_select())
        .first(connection)?;
    Ok(Some(row.into_active().session))
}

/// Uses up a sign-in link and returns its organization; `None` when it is unknown or expired.
fn take_sign_in_link(
    connection: &mut Connection,
    token: &TokenHash,
    now: Timestamp,
) -> Result<Option<StoredId>, DatabaseError> {
    let link = console_links::table.filter(console_links::token_sha256.eq(token.as_bytes().as_slice()));
    let found: Option<(StoredId, i64)> = link
        .select((console_links::organization_id, console_links::expires_at))
        .first(connection)
        .optional()?;
    // Another transaction may have removed the link since it was read.
    let removed = diesel::delete(link).execute(connection)?;
    Ok(found.filter(|(_, expires_at)| removed == 1 && *expires_at > now.as_millis()).map(|(id, _)| id))
}

pub fn find(
    connection: &mut Connection,
    token: &TokenHash,
    idle_since: Timestamp,
    now: Timestamp,
) -> Result<Option<ActiveSession>, DatabaseError> {
    let with_token = console_sessions::table
        .inner_join(organizations::table)
        .left_join(api_keys::table)
        .filter(console_sessions::token_sha256.eq(token.as_bytes().as_slice()));
    let active = only_active!(with_token, idle_since, now).select(SessionRow::as_select());
    let row: Option<SessionRow> = active.first(connection).optional()?;
    Ok(row.map(SessionRow::into_active))
}

pub fn record_use(connection: &mut Connection, id: SessionId, now: Timestamp) -> Result<(), DatabaseError> {
    diesel::update(console_sessions::table.find(StoredId::of(id)))
        .filter(console_sessions::last_used_at.lt(now.as_millis()))
        .set(console_sessions::last_used_at.eq(now.as_millis()))
        .execute(connection)?;
    Ok(())
}

pub fn list(
    connection: &mut Connection,
    organization_id: OrganizationId,
    before: Option<SessionId>,
    idle_since: Timestamp,
    now: Timestamp,
) -> Result<Vec<SessionEntry>, DatabaseError> {
    let of_organization = console_sessions::table
        .left_join(api_keys::table)
        .filter(console_sessions::organization_id.eq(StoredId::of(organization_id)));
    let mut active = only_active!(of_organization, idle_since, now).into_boxed();
    if let Some(before) = before {
        active = active.filter(console_sessions::id.lt(StoredId::of(before)));
    }
    let newest = active.order(console_sessions::id.desc()).limit(MAX_LISTED_SESSIONS);
    let rows: Vec<EntryRow> = newest.select(EntryRow::as_select()).load(connection)?;
    Ok(rows.into_iter().map(EntryRow::into_entry).collect())
}

pub fn end(
    connection: &mut Connection,
    organization_id: OrganizationId,
    id: SessionId,
) -> Result<(), DatabaseError> {
    diesel::delete(console_sessions::table.find(StoredId::of(id)))
        .filter(console_sessions::organization_id.eq(StoredId::of(organization_id)))
        .execute(connection)?;
    Ok(())
}

pub fn prune(
    connection: &mut Connection,
    idle_since: Timestamp,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    diesel::delete(console_links::table.filter(console_links::expires_at.le(now.as_millis())))
        .execute(connection)?;
    let is_over = console_sessions::expires_at
        .le(now.as_millis())
        .or(console_sessions::last_used_at.le(idle_since.as_millis()));
    diesel::delete(console_sessions::table.filter(is_over)).execute(connection)?;
    Ok(())
}

impl SessionRow {
    fn into_active(self) -> ActiveSession {
        let session = Session {
            id: self.id.0.into(),
            organization_id: self.organization_id.0.into(),
            organization: self.organization,
            expires_at: Timestamp::saturating_from_millis(self.expires_at),
        };
        ActiveSession { session, last_used_at: Timestamp::saturating_from_millis(self.last_used_at) }
    }
}

impl EntryRow {
    fn into_entry(self) -> SessionEntry {
        SessionEntry {
            id: self.id.0.into(),
            browser: self.browser,
            key_name: self.key_name,
            created_at: Timestamp::saturating_from_millis(self.created_at),
            last_used_at: Timestamp::saturating_from_millis(self.last_used_at),
            expires_at: Timestamp::saturating_from_millis(self.expires_at),
        }
    }
}
