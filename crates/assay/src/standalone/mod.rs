//! `assay standalone`: every service in one process, on SQLite, with files on disk. The same code as the distributed
//! stack: each service listens on a loopback port of its own, and the gateway talks HTTP to all of them.

mod greeting;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use anyhow::{Context, Result};
use assay_agent_registry::console::CreateSignInTokenError;
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
use crate::roles::{self, Role};
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
    let gateway_listener = roles::bind(settings.gateway.listen)?;
    let service_listeners = bind_services(&mut settings)?;
    migrate_all(&settings).await?;
    release_claims_of_killed_process(&settings).await?;
    let address = gateway_listener.local_addr()?;
    folder.record_address(address)?;
    let is_first_start = is_first_start(&settings).await?;
    let mut tasks = Tasks::new(Readiness::default());
    start_all(&settings, gateway_listener, service_listeners, &mut tasks)?;
    serve_metrics(&mut tasks, &mut telemetry)?;
    // Last: the key is shown only once, so a start that fails must not create it.
    let first_key = if is_first_start { create_first_key(&settings).await? } else { None };
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

/// Binds a loopback listener with an ephemeral port for each service, and sets the addresses of the services.
fn bind_services(settings: &mut Settings) -> Result<Vec<(Role, TcpListener)>> {
    let mut listeners = Vec::new();
    let mut bind = |role: Role| -> Result<Url> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(address).context("no free loopback port")?;
        let url = Url::parse(&format!("http://{}", listener.local_addr()?))?;
        listeners.push((role, listener));
        Ok(url)
    };
    settings.services.registry_url = bind(Role::AgentRegistry)?;
    settings.services.ingest_url = bind(Role::Ingest)?;
    settings.services.scoring_url = bind(Role::ScoringWorker)?;
    settings.services.export_url = bind(Role::Export)?;
    bind(Role::ExportWorker)?;
    if settings.webhooks_url()?.is_some() {
        settings.services.webhooks_url = bind(Role::Webhooks)?.into();
    }
    if settings.console_url()?.is_some() {
        settings.services.console_url = bind(Role::Console)?.into();
    }
    Ok(listeners)
}

fn start_all(
    settings: &Settings,
    gateway_listener: TcpListener,
    service_listeners: Vec<(Role, TcpListener)>,
    tasks: &mut Tasks,
) -> Result<()> {
    let bus = roles::open_bus(settings)?;
    for (role, listener) in service_listeners {
        roles::start(role, settings, listener, || Ok(bus.clone()), tasks)?;
        tasks.begin_role();
    }
    roles::start(Role::Gateway, settings, gateway_listener, || Ok(bus), tasks)
}

/// Whether no key exists yet, not even the bootstrap key.
async fn is_first_start(settings: &Settings) -> Result<bool> {
    let database = Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA)?;
    Ok(keys::list(&database, None).await?.is_empty())
}

/// Creates an organization with a key, unless the settings have a key.
async fn create_first_key(settings: &Settings) -> Result<Option<ApiKey>> {
    if settings.bootstrap()?.is_some() {
        return Ok(None);
    }
    let database = Database::open(&settings.registry.database(), assay_agent_registry::SCHEMA)?;
    let new_key = CreateKey {
        organization: OrganizationName::parse(&settings.bootstrap_organization)
            .context("bootstrap_organization")?,
        name: KeyName::parse("first start")?,
        scopes: Scopes::default_for_keys(),
        expires_at: None,
    };
    Ok(Some(keys::create(&database, new_key).await?.key))
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
        Err(CreateSignInTokenError::UnknownOrganization) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
