//! The processes of a stack and their settings.

use std::path::Path;

use anyhow::{Context, Result};
use assay_testkit::{ServiceRole, Template, TestDatabase, free_port, random_name, services};

/// The key that every stack starts with, of the organization `default`.
pub const BOOTSTRAP_KEY: &str = "end-to-end-bootstrap-key";

/// Settings of every stack: short timeouts and intervals, so that tests can wait for them.
const COMMON: [(&str, &str); 9] = [
    ("ASSAY_BOOTSTRAP_API_KEY", BOOTSTRAP_KEY),
    ("ASSAY_GATEWAY__KEY_CACHE_SECONDS", "1"),
    ("ASSAY_GATEWAY__BODY_DEADLINE_SECONDS", "3"),
    ("ASSAY_EXPORT_WORKER__LEASE_MILLISECONDS", "5000"),
    ("ASSAY_SCORING__SUBSCRIBERS_POLL_INTERVAL_MILLISECONDS", "200"),
    // Webhook receivers of tests listen on loopback; every other private address is still refused.
    ("ASSAY_WEBHOOKS__ALLOW_HTTP", "true"),
    ("ASSAY_WEBHOOKS__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("ASSAY_WEBHOOKS__RETRY_SCHEDULE_SECONDS", "0,1,1,2,2,3,3,5,5,5"),
    ("ASSAY_TELEMETRY__FILTER", "info,actix_server=warn"),
];

/// A process of the distributed stack: subcommand, setting of its address, setting by which others find it.
const ROLES: [(&str, &str, Option<&str>); 7] = [
    ("agent-registry", "ASSAY_REGISTRY__LISTEN", Some("ASSAY_SERVICES__REGISTRY_URL")),
    ("ingest", "ASSAY_INGEST__LISTEN", Some("ASSAY_SERVICES__INGEST_URL")),
    ("scoring-worker", "ASSAY_SCORING__LISTEN", Some("ASSAY_SERVICES__SCORING_URL")),
    ("export", "ASSAY_EXPORT__LISTEN", Some("ASSAY_SERVICES__EXPORT_URL")),
    ("export-worker", "ASSAY_EXPORT_WORKER__LISTEN", None),
    ("webhooks", "ASSAY_WEBHOOKS__LISTEN", Some("ASSAY_SERVICES__WEBHOOKS_URL")),
    ("gateway", "ASSAY_GATEWAY__LISTEN", None),
];

const DATABASES: [(ServiceRole, &str); 5] = [
    (ServiceRole { role: "assay_registry", schema: "registry" }, "ASSAY_REGISTRY__DATABASE_URL"),
    (ServiceRole { role: "assay_ingest", schema: "ingest" }, "ASSAY_INGEST__DATABASE_URL"),
    (ServiceRole { role: "assay_scoring", schema: "scoring" }, "ASSAY_SCORING__DATABASE_URL"),
    (ServiceRole { role: "assay_export", schema: "export" }, "ASSAY_EXPORT__DATABASE_URL"),
    (ServiceRole { role: "assay_webhooks", schema: "webhooks" }, "ASSAY_WEBHOOKS__DATABASE_URL"),
];

/// Environment variables.
pub type Settings = Vec<(String, String)>;

/// A process of a stack.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its subcommand; names the log, too.
    pub name: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its address; `None` when the system chooses the port and the process prints it.
    pub address: Option<String>,
}

pub struct Deployment {
    /// The processes; the last one is the public one.
    pub members: Vec<Member>,
    /// Settings of all processes.
    pub settings: Settings,
    /// Dropped with the stack.
    pub _database: Option<TestDatabase>,
}

/// One process with everything in it; its data in `folder`.
pub fn standalone(folder: &Path) -> Deployment {
    let member =
        Member { name: "standalone", arguments: standalone_arguments(folder, "127.0.0.1:0"), address: None };
    Deployment { members: vec![member], settings: common(), _database: None }
}

/// The command line of a standalone that listens on `address`.
pub fn standalone_arguments(folder: &Path, address: &str) -> Vec<String> {
    let data = folder.display().to_string();
    ["standalone", "--listen", address, "--data-dir", &data].map(str::to_owned).to_vec()
}

/// A process for every role, with a separate database and broker namespace; files in `folder`.
pub fn distributed(folder: &Path) -> Result<Deployment> {
    let template = DATABASES
        .iter()
        .fold(Template::new("e2e", "roles and schemas"), |template, (role, _)| template.owned_by(*role));
    let database = TestDatabase::create(&template, |_url| Ok(()))?;
    let mut settings = common();
    let mut set = |name: &str, value: String| settings.push((name.to_owned(), value));
    for (role, variable) in DATABASES {
        set(variable, database.url_as(role)?);
    }
    set("ASSAY_BUS__URL", services::rabbit()?.to_owned());
    set("ASSAY_BUS__NAMESPACE", random_name("e2e")?);
    set("ASSAY_OBJECTS__URL", format!("file://{}", folder.to_str().context("no text")?));
    set("ASSAY_SECURITY__SERVICE_TOKEN_SECRET", random_name("a-secret-of-the-services-of-this-stack")?);
    set("ASSAY_SECURITY__SIGNING_KEYS", format!("k1:{}", random_name("a-key-for-signatures-of-this-stack")?));
    let mut members = Vec::new();
    for (name, listen, url) in ROLES {
        let address = format!("127.0.0.1:{}", free_port()?);
        if let Some(url) = url {
            set(url, format!("http://{address}"));
        }
        set(listen, address.clone());
        members.push(Member { name, arguments: vec![name.to_owned()], address: Some(address) });
    }
    Ok(Deployment { members, settings, _database: Some(database) })
}

fn common() -> Settings {
    COMMON.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
