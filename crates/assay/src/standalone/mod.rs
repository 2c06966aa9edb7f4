//! `assay standalone`: every service in one process, on SQLite, with files on disk. The same code as the distributed
//! stack: each service listens on a loopback port of its own, and the gateway talks HTTP to all of them.

mod greeting;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context, Result};
use assay_agent_registry::console::CreateSignInLinkError;
use assay_agent_registry::keys::{self, CreateKey, KeyName, OrganizationName};
use assay_contracts::tenant::Scopes;
use assay_platform::auth::ApiKey;
use assay_platform::db::Database;
use assay_platform::runtime::{Readiness, Tasks};
use assay_platform::telemetry;
use assay_platform::web::serve_metrics;
use url::Url;

use crate::cli::StandaloneArguments;
use crate::console_link::{create_console_link, gateway_address};
use crate::installation::{DataFolder, ServiceOutbox, migrate_all, open_outboxes};
use crate::open_files;
use crate::roles;
use crate::settings::Settings;

/// Runs until a stop signal.
pub async fn run(arguments: StandaloneArguments) -> Result<()> {
    let mut settings = Settings::load()?;
    if let Some(listen) = arguments.listen {
        settings.gateway.listen = listen;
    }
    let mut telemetry = telemetry::start(&settings.telemetry, "assay")?;
    open_files::raise_fd_limit();
    let folder = DataFolder::open(&arguments.data_dir)?;
    folder.configure_databases(&mut settings);
    folder.configure_objects(&mut settings)?;
    folder.configure_secrets(&mut settings)?;
    settings.bus.url = "local:".into();
    // Before anything is written, so that a port in use is noticed first.
    let public = roles::bind(settings.gateway.listen)?;
    let internal = InternalListeners::bind(&mut settings)?;
    migrate_all(&settings).await?;
    release_claims_of_killed_process(&settings).await?;
    let address = public.local_addr()?;
    folder.record_address(address)?;
    let is_first_start = is_first_start(&settings).await?;
    let mut tasks = Tasks::new(Readiness::default());
    start_all(&settings, public, internal, &mut tasks)?;
    serve_metrics(&mut tasks, &mut telemetry)?;
    // Last: the key is shown only once, so a start that fails must not create it.
    let first_key = create_first_key(&settings).await?;
    let sign_in_link = if greeting::may_print_sign_in_link(is_first_start) {
        create_bootstrap_sign_in_link(&settings, address).await?
    } else {
        None
    };
    greeting::print(address, sign_in_link.as_deref(), first_key.as_ref())?;
    let result = roles::run_until_stopped(tasks, &settings).await;
    telemetry.shutdown().await;
    result
}

/// The folder is locked, so claims in it belong to a process that no longer runs: no need to wait for their leases.
async fn release_claims_of_killed_process(settings: &Settings) -> Result<()> {
    for ServiceOutbox { service, outbox } in open_outboxes(settings).await? {
        outbox.release_all_claims().await.with_context(|| format!("outbox of {service}"))?;
    }
    Ok(())
}

/// Loopback listeners of the services, on ephemeral ports.
struct InternalListeners {
    registry: TcpListener,
    ingest: TcpListener,
    scoring: TcpListener,
    export: TcpListener,
    export_worker: TcpListener,
    /// `None` when webhooks are turned off.
    webhooks: Option<TcpListener>,
    /// `None` when there is no console.
    console: Option<TcpListener>,
}

impl InternalListeners {
    fn bind(settings: &mut Settings) -> Result<Self> {
        let bind =
            || TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).context("no free loopback port");
        let listeners = Self {
            registry: bind()?,
            ingest: bind()?,
            scoring: bind()?,
            export: bind()?,
            export_worker: bind()?,
            webhooks: settings.webhooks_url()?.map(|_| bind()).transpose()?,
            console: settings.console_url()?.map(|_| bind()).transpose()?,
        };
        settings.services.registry_url = address_of(&listeners.registry)?;
        settings.services.ingest_url = address_of(&listeners.ingest)?;
        settings.services.scoring_url = address_of(&listeners.scoring)?;
        settings.services.export_url = address_of(&listeners.export)?;
        if let Some(listener) = &listeners.webhooks {
            settings.services.webhooks_url = address_of(listener)?.into();
        }
        if let Some(listener) = &listeners.console {
            settings.services.console_url = address_of(listener)?.into();
        }
        Ok(listeners)
    }
}

fn address_of(listener: &TcpListener) -> Result<Url> {
    Ok(Url::parse(&format!("http://{}", listener.local_addr()?))?)
}

fn start_all(
    settings: &Settings,
    public: TcpListener,
    internal: InternalListeners,
    tasks: &mut Tasks,
) -> Result<()> {
    let bus = roles::open_bus(settings)?;
    roles::start_registry(settings, internal.registry, bus.clone(), tasks)?;
    tasks.begin_role();
    roles::start_ingest(settings, internal.ingest, bus.clone(), tasks)?;
    tasks.begin_role();
    roles::start_scoring(settings, internal.scoring, bus.clone(), tasks)?;
    tasks.begin_role();
    roles::start_export(settings, internal.export, bus.clone(), tasks)?;
    tasks.begin_role();
    roles::start_export_worker(settings, internal.export_worker, bus.clone(), tasks)?;
    tasks.begin_role();
    if let Some(listener) = internal.webhooks {
        roles::start_webhooks(settings, listener, bus, tasks)?;
        tasks.begin_role();
    }
    if let Some(listener) = internal.console {
        roles::start_console(settings, listener, tasks)?;
        tasks.begin_role();
    }
    roles::start_gateway(settings, public, tasks)
}

/// Whether no key exists yet, not even the bootstrap key.
async fn is_first_start(settings: &Settings) -> Result<bool> {
    let database = Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA)?;
    Ok(keys::list(&database, None).await?.is_empty())
}

/// Creates an organization with a key on the first start, unless the settings have a key.
async fn create_first_key(settings: &Settings) -> Result<Option<ApiKey>> {
    if settings.bootstrap()?.is_some() {
        return Ok(None);
    }
    let database = Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA)?;
    if !keys::list(&database, None).await?.is_empty() {
        return Ok(None);
    }
    let new = CreateKey {
        organization: OrganizationName::parse(&settings.bootstrap_organization)
            .context("bootstrap_organization")?,
        name: KeyName::parse("first start")?,
        scopes: Scopes::default_for_keys(),
        expires_at: None,
    };
    Ok(Some(keys::create(&database, new).await?.key))
}

/// Creates a sign-in link for the organization of the settings; `None` without the console or the organization.
async fn create_bootstrap_sign_in_link(settings: &Settings, address: SocketAddr) -> Result<Option<String>> {
    if settings.console_url()?.is_none() {
        return Ok(None);
    }
    let database = Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA)?;
    let organization =
        OrganizationName::parse(&settings.bootstrap_organization).context("bootstrap_organization")?;
    if let Some((key, _)) = settings.bootstrap()? {
        // agent-registry does this, too, but perhaps a moment later; it is idempotent.
        keys::bootstrap(&database, &key, organization.clone()).await?;
    }
    match create_console_link(&database, organization, &gateway_address(settings, address)).await {
        Ok(link) => Ok(Some(link)),
        // Keys exist, but not for this organization: `assay console link --organization` names another.
        Err(CreateSignInLinkError::UnknownOrganization) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
