//! A running role on a fresh database of either kind, and ways to talk to it.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use assay_agent_registry::keys::{KeyName, NewKey, OrganizationName, create, list};
use assay_agent_registry::{Config, Dependencies, MIGRATIONS, SCHEMA, start};
use assay_contracts::ids::{ApiKeyId, OrganizationId};
use assay_contracts::internal::{ResolveKey, ResolvedKey};
use assay_contracts::tenant::{Scope, Scopes, Tenant};
use assay_messaging::{Bus, BusSettings};
use assay_platform::auth::{ApiKey, Audience, ServiceClaims, ServiceTokens};
use assay_platform::db::{Database, DatabaseSettings};
use assay_platform::runtime::{Readiness, Tasks, blocking, now};
use assay_testkit::{ServiceRole, Template, TestDatabase, random_name};
use reqwest::{Client, Response};
use tempfile::TempDir;

pub const DEADLINE: Duration = Duration::from_secs(15);

/// What keeps the database alive.
pub enum Place {
    Sqlite(#[allow(dead_code, reason = "removes the folder when dropped")] TempDir),
    Postgres(#[allow(dead_code, reason = "drops the database when dropped")] TestDatabase),
}

pub struct Stage {
    pub database: Database,
    pub bus: Bus,
    pub tasks: Tasks,
    pub tokens: ServiceTokens,
    pub http: Client,
    pub address: String,
    _place: Place,
}

/// An organization with its key.
pub struct Member {
    pub organization_id: OrganizationId,
    pub key_id: ApiKeyId,
    pub key: ApiKey,
}

impl Stage {
    pub async fn on_sqlite() -> Result<Self> {
        let (settings, place) = sqlite_place()?;
        Database::open(&settings, SCHEMA)?.migrate(MIGRATIONS).await?;
        Self::run(settings, place, None)
    }

    pub async fn on_postgres() -> Result<Self> {
        let (settings, place) = postgres_place().await?;
        Self::run(settings, place, None)
    }

    pub fn run(
        settings: DatabaseSettings,
        place: Place,
        bootstrap: Option<(ApiKey, String)>,
    ) -> Result<Self> {
        let tokens = tokens()?;
        let bus = Bus::open(&BusSettings::new("local:".to_owned()))?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let database = Database::open(&settings, SCHEMA)?;
        let mut tasks = Tasks::new(Readiness::default());
        let dependencies = Dependencies { listener, tokens: tokens.clone(), bus: bus.clone(), bootstrap };
        start(config(settings)?, dependencies, &mut tasks)?;
        let http = Client::builder().no_proxy().timeout(DEADLINE).build()?;
        Ok(Self { database, bus, tasks, tokens, http, address, _place: place })
    }

    /// A new organization with a key that may do everything but administer.
    pub async fn member(&self) -> Result<Member> {
        self.member_of(&random_name("organization")?).await
    }

    pub async fn member_of(&self, organization: &str) -> Result<Member> {
        let created = create(&self.database, new_key(organization)?).await?;
        let grant = self.resolve(&created.key).await?.grant.context("the new key is not known")?;
        Ok(Member { organization_id: grant.organization_id, key_id: created.id, key: created.key })
    }

    pub async fn resolve(&self, key: &ApiKey) -> Result<ResolvedKey> {
        let body = serde_json::to_string(&ResolveKey { key_sha256: key.hash().to_string() })?;
        let response = self.post("/internal/v1/keys/resolve", &ServiceClaims::Service, body).await?;
        Ok(response.error_for_status()?.json().await?)
    }

    pub fn token(&self, claims: &ServiceClaims) -> Result<String> {
        Ok(self.tokens.issue(Audience::AgentRegistry, claims, now())?)
    }

    pub async fn post(&self, path: &str, claims: &ServiceClaims, body: String) -> Result<Response> {
        let request = self.http.post(format!("{}{path}", self.address)).bearer_auth(self.token(claims)?);
        Ok(request.header("content-type", "application/json").body(body).send().await?)
    }

    pub async fn create_agent(&self, member: &Member, body: &str) -> Result<Response> {
        self.post("/internal/v1/agents", &for_member(member, Scope::Agents), body.to_owned()).await
    }

    pub async fn create_agent_with_key(&self, member: &Member, key: &str, body: &str) -> Result<Response> {
        let claims = for_member(member, Scope::Agents);
        let request = self.http.post(format!("{}/internal/v1/agents", self.address));
        let request = request.bearer_auth(self.token(&claims)?).header("Idempotency-Key", key);
        Ok(request.header("content-type", "application/json").body(body.to_owned()).send().await?)
    }

    pub async fn recorded_use_of(&self, id: ApiKeyId) -> Result<bool> {
        let keys = list(&self.database, None).await?;
        Ok(keys.iter().any(|key| key.id == id && key.last_used_at.is_some()))
    }
}

pub fn new_key(organization: &str) -> Result<NewKey> {
    Ok(NewKey {
        organization: OrganizationName::parse(organization)?,
        name: KeyName::parse("test")?,
        scopes: Scopes::default_for_keys(),
        expires_at: None,
    })
}

pub fn for_member(member: &Member, scope: Scope) -> ServiceClaims {
    ServiceClaims::Tenant(Tenant {
        organization_id: member.organization_id,
        scopes: Scopes::from_iter([scope]),
    })
}

pub fn tokens() -> Result<ServiceTokens> {
    Ok(ServiceTokens::new(&"a secret of the tests of agent-registry".to_owned().into())?)
}

pub fn sqlite_place() -> Result<(DatabaseSettings, Place)> {
    let folder = tempfile::tempdir()?;
    let database_url = format!("sqlite:{}", folder.path().join("registry.db").display()).into();
    Ok((DatabaseSettings { database_url, database_pool_size: 4 }, Place::Sqlite(folder)))
}

pub async fn postgres_place() -> Result<(DatabaseSettings, Place)> {
    let template = Template::new("registry", format!("{:?}", migration_names().await?))
        .owned_by(ServiceRole { role: "assay_registry", schema: SCHEMA });
    let runtime = tokio::runtime::Handle::current();
    let created = blocking(move || {
        TestDatabase::create(&template, |url| {
            let settings = DatabaseSettings { database_url: url.to_owned().into(), database_pool_size: 1 };
            runtime.block_on(async { Database::open(&settings, SCHEMA)?.migrate(MIGRATIONS).await })?;
            Ok(())
        })
    });
    let database = created.await??;
    let settings = DatabaseSettings { database_url: database.url().to_owned().into(), database_pool_size: 8 };
    Ok((settings, Place::Postgres(database)))
}

/// What an empty database lacks.
async fn migration_names() -> Result<Vec<String>> {
    let (settings, _place) = sqlite_place()?;
    Ok(Database::open(&settings, SCHEMA)?.pending_migrations(MIGRATIONS).await?)
}

fn config(settings: DatabaseSettings) -> Result<Config> {
    let DatabaseSettings { database_url, database_pool_size } = settings;
    let listen = "127.0.0.1:0".parse()?;
    Ok(Config { listen, database_url, database_pool_size, outbox_age_limit_seconds: 60 })
}

/// Waits for a condition.
pub async fn eventually<F: Future<Output = Result<bool>>>(
    what: &str,
    condition: impl Fn() -> F,
) -> Result<()> {
    let polled = async {
        while !condition().await? {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    };
    tokio::time::timeout(DEADLINE, polled).await.map_err(|_| anyhow!("waited in vain for {what}"))?
}

/// Each of these tests once on SQLite and once on PostgreSQL.
macro_rules! on_both_databases {
    ($($test:ident,)*) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                super::$test(crate::stage::Stage::on_sqlite().await?).await
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> anyhow::Result<()> {
                super::$test(crate::stage::Stage::on_postgres().await?).await
            })*
        }
    };
}
pub(crate) use on_both_databases;
