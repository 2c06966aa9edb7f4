//! When sessions and sign-in links end. The tests pass the time to the store.

use anyhow::{Context as _, Result};
use assay_contracts::ids::OrganizationId;
use assay_contracts::tenant::{Scope, Scopes};
use assay_contracts::time::Timestamp;
use assay_platform::auth::{ApiKey, RandomToken, TokenHash};
use assay_platform::db::Database;
use assay_platform::runtime::{new_id, now};
use assay_testkit::{ServiceDatabase, on_both_databases};

use super::{KeyOwner, KeyToStore, SessionToStore, Store, open};
use crate::app::console_sessions::{create_sign_in_token, idle_since};
use crate::domain::{KeyName, OrganizationName, SIGN_IN_LINK_MILLIS, SessionLimits, SignIn};
use crate::{MIGRATIONS, SCHEMA};

const LIMITS: SessionLimits = SessionLimits { idle_millis: 60_000, total_millis: 600_000 };

on_both_databases! { SessionFixture {
    session_ends_when_it_is_not_used,
    session_in_use_ends_after_its_total_time,
    session_ends_when_its_key_expires,
    sign_in_link_ends_after_an_hour,
} }

struct SessionFixture {
    database: Database,
    organization_id: OrganizationId,
    began: Timestamp,
    _service_database: ServiceDatabase,
}

impl SessionFixture {
    async fn on_sqlite() -> Result<Self> {
        Self::of(ServiceDatabase::sqlite(SCHEMA, MIGRATIONS).await?).await
    }

    async fn on_postgres() -> Result<Self> {
        Self::of(ServiceDatabase::postgres(SCHEMA, MIGRATIONS).await?).await
    }

    /// With an organization, which is created with its first key.
    async fn of(service_database: ServiceDatabase) -> Result<Self> {
        let database = service_database.open(SCHEMA)?;
        let began = now();
        let organization_id = new_id();
        let this = Self { database, organization_id, began, _service_database: service_database };
        this.sign_in_by_new_key(None).await?;
        Ok(this)
    }

    fn store(&self) -> Store {
        open(&self.database)
    }

    /// Creates a key, and returns the sign-in with it.
    async fn sign_in_by_new_key(&self, expires_at: Option<Timestamp>) -> Result<SignIn> {
        let id = new_id();
        let owner = KeyOwner::Named { name: organization()?, new_id: self.organization_id };
        let key = KeyToStore {
            id,
            hash: ApiKey::generate()?.hash(),
            owner,
            name: KeyName::parse("test")?,
            scopes: Scopes::from_iter([Scope::Console]),
            expires_at,
            created_at: self.began,
        };
        self.store().create_key(key).await?;
        Ok(SignIn::Key { id, organization_id: self.organization_id })
    }

    /// Begins a session and returns the hash of its token; `None` when the sign-in is refused.
    async fn begin(&self, sign_in: SignIn, at: Timestamp) -> Result<Option<TokenHash>> {
        let token = RandomToken::generate()?.hash();
        let expires_at = at.plus_millis(LIMITS.total_millis);
        let browser = "Firefox".to_owned();
        let new = SessionToStore { id: new_id(), sign_in, token, browser, created_at: at, expires_at };
        Ok(self.store().begin_session(new).await?.map(|_| token))
    }

    /// Whether the session is active then: found and listed.
    async fn is_active(&self, token: TokenHash, at: Timestamp) -> Result<bool> {
        let idle_since = idle_since(LIMITS, at);
        let found = self.store().find_session(token, idle_since, at).await?;
        let listed = self.store().list_sessions(self.organization_id, None, idle_since, at).await?;
        assert_eq!(found.is_some(), listed.len() == 1, "found and listed");
        Ok(found.is_some())
    }
}

fn organization() -> Result<OrganizationName> {
    Ok(OrganizationName::parse("acme")?)
}

async fn session_ends_when_it_is_not_used(fixture: SessionFixture) -> Result<()> {
    let sign_in = fixture.sign_in_by_new_key(None).await?;
    let token = fixture.begin(sign_in, fixture.began).await?.context("refused")?;
    let last_moment = fixture.began.plus_millis(LIMITS.idle_millis - 1);
    assert!(fixture.is_active(token, last_moment).await?);
    assert!(!fixture.is_active(token, last_moment.plus_millis(1)).await?);
    let session = fixture.store().find_session(token, idle_since(LIMITS, last_moment), last_moment).await?;
    fixture.store().record_session_use(session.context("none")?.session.id, last_moment).await?;
    assert!(fixture.is_active(token, last_moment.plus_millis(LIMITS.idle_millis - 1)).await?, "a use counts");
    let end = last_moment.plus_millis(LIMITS.idle_millis);
    assert!(!fixture.is_active(token, end).await?);
    fixture.store().prune_sessions(idle_since(LIMITS, end), end).await?;
    assert!(!fixture.is_active(token, last_moment).await?, "maintenance removed it");
    Ok(())
}

async fn session_in_use_ends_after_its_total_time(fixture: SessionFixture) -> Result<()> {
    let sign_in = fixture.sign_in_by_new_key(None).await?;
    let token = fixture.begin(sign_in, fixture.began).await?.context("refused")?;
    let last_moment = fixture.began.plus_millis(LIMITS.total_millis - 1);
    let session = fixture.store().find_session(token, fixture.began.plus_millis(-1), fixture.began).await?;
    fixture.store().record_session_use(session.context("none")?.session.id, last_moment).await?;
    assert!(fixture.is_active(token, last_moment).await?);
    let end = last_moment.plus_millis(1);
    assert!(!fixture.is_active(token, end).await?);
    fixture.store().prune_sessions(idle_since(LIMITS, last_moment), last_moment).await?;
    assert!(fixture.is_active(token, last_moment).await?, "maintenance leaves it alone");
    fixture.store().prune_sessions(idle_since(LIMITS, end), end).await?;
    assert!(!fixture.is_active(token, last_moment).await?, "maintenance removed it");
    Ok(())
}

async fn session_ends_when_its_key_expires(fixture: SessionFixture) -> Result<()> {
    let end = fixture.began.plus_millis(30_000);
    let sign_in = fixture.sign_in_by_new_key(Some(end)).await?;
    let token = fixture.begin(sign_in, fixture.began).await?.context("refused")?;
    assert!(fixture.is_active(token, end.plus_millis(-1)).await?);
    assert!(!fixture.is_active(token, end).await?);
    Ok(())
}

async fn sign_in_link_ends_after_an_hour(fixture: SessionFixture) -> Result<()> {
    assert_eq!(SIGN_IN_LINK_MILLIS, 60 * 60 * 1_000);
    let link = create_sign_in_token(&fixture.database, organization()?).await?;
    let late = create_sign_in_token(&fixture.database, organization()?).await?;
    let pruned = create_sign_in_token(&fixture.database, organization()?).await?;
    let made = now();
    // Ten seconds early, because the links were made some time before `made`. Maintenance must leave them at this time.
    let in_time = made.plus_millis(SIGN_IN_LINK_MILLIS - 10_000);
    fixture.store().prune_sessions(in_time, in_time).await?;
    assert!(fixture.begin(SignIn::Link(link.hash()), in_time).await?.is_some());
    let end = made.plus_millis(SIGN_IN_LINK_MILLIS);
    assert!(fixture.begin(SignIn::Link(late.hash()), end).await?.is_none());
    assert!(fixture.begin(SignIn::Link(late.hash()), in_time).await?.is_none(), "the attempt used it up");
    fixture.store().prune_sessions(end, end).await?;
    assert!(fixture.begin(SignIn::Link(pruned.hash()), in_time).await?.is_none(), "maintenance removed it");
    Ok(())
}
