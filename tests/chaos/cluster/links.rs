//! Network links between the processes. Each has its own proxy, so it can be cut, frozen or slowed down independently.
//! Links to services spread connections over the replicas, as a Kubernetes Service does.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use assay_testkit::free_port;
use assay_testkit::proxy::{LinkState, Proxy};

use super::backends::{Backends, database_url};
use super::{Instance, ROLES};

/// Target of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum To {
    Postgres,
    Rabbit,
    /// The HTTP server of the role in the link, for all callers.
    Service,
}

/// A link: from a role to a server, or from all callers to a role.
pub type Link = (&'static str, To);

/// Role, setting of its own address, setting by which others find it, setting of its database, its schema.
struct Wiring {
    role: &'static str,
    listen: &'static str,
    url: Option<&'static str>,
    database: Option<(&'static str, &'static str)>,
}

const WIRING: [Wiring; 7] = [
    Wiring {
        role: ROLES[0],
        listen: "ASSAY_REGISTRY__LISTEN",
        url: Some("ASSAY_SERVICES__REGISTRY_URL"),
        database: Some(("ASSAY_REGISTRY__DATABASE_URL", "registry")),
    },
    Wiring {
        role: ROLES[1],
        listen: "ASSAY_INGEST__LISTEN",
        url: Some("ASSAY_SERVICES__INGEST_URL"),
        database: Some(("ASSAY_INGEST__DATABASE_URL", "ingest")),
    },
    Wiring {
        role: ROLES[2],
        listen: "ASSAY_SCORING__LISTEN",
        url: Some("ASSAY_SERVICES__SCORING_URL"),
        database: Some(("ASSAY_SCORING__DATABASE_URL", "scoring")),
    },
    Wiring {
        role: ROLES[3],
        listen: "ASSAY_EXPORT__LISTEN",
        url: Some("ASSAY_SERVICES__EXPORT_URL"),
        database: Some(("ASSAY_EXPORT__DATABASE_URL", "export")),
    },
    Wiring {
        role: ROLES[4],
        listen: "ASSAY_EXPORT_WORKER__LISTEN",
        url: None,
        database: Some(("ASSAY_EXPORT_WORKER__DATABASE_URL", "export")),
    },
    Wiring {
        role: ROLES[5],
        listen: "ASSAY_WEBHOOKS__LISTEN",
        url: Some("ASSAY_SERVICES__WEBHOOKS_URL"),
        database: Some(("ASSAY_WEBHOOKS__DATABASE_URL", "webhooks")),
    },
    Wiring { role: ROLES[6], listen: "ASSAY_GATEWAY__LISTEN", url: None, database: None },
];

/// All links.
pub struct Links {
    proxies: BTreeMap<Link, Proxy>,
    public: String,
}

impl Links {
    /// The public address.
    pub fn public(&self) -> &str {
        &self.public
    }

    pub fn all(&self) -> Vec<Link> {
        self.proxies.keys().copied().collect()
    }

    pub fn set(&self, link: Link, state: LinkState) {
        if let Some(proxy) = self.proxies.get(&link) {
            proxy.set(state);
        }
    }

    /// Sets all links to this kind of target.
    pub fn set_all(&self, to: To, state: LinkState) {
        self.proxies.iter().filter(|((_, target), _)| *target == to).for_each(|(_, proxy)| proxy.set(state));
    }

    pub fn heal(&self) {
        self.proxies.values().for_each(Proxy::heal);
    }

    /// Points the links to the servers' current ports.
    pub fn retarget(&self, backends: &Backends) {
        for ((_, to), proxy) in &self.proxies {
            let server = match to {
                To::Postgres => backends.postgres_address(),
                To::Rabbit => backends.rabbit_address(),
                To::Service => None,
            };
            if let Some(server) = server {
                proxy.set_target(server);
            }
        }
    }
}

/// One process without proxies.
pub async fn standalone(data: &Path) -> Result<(Links, Vec<Instance>)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let arguments = ["standalone", "--listen", &address, "--data-dir", &data.display().to_string()]
        .map(str::to_owned)
        .to_vec();
    let instance = Instance::new("standalone", 1, address.clone(), arguments, Vec::new());
    Ok((Links { proxies: BTreeMap::new(), public: address }, vec![instance]))
}

/// `replicas` processes of every role, with a proxy on every link.
pub async fn distributed(backends: &Backends, replicas: usize) -> Result<(Links, Vec<Instance>)> {
    let mut proxies = BTreeMap::new();
    let mut addresses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut shared = Vec::new();
    let mut public = String::new();
    for wiring in &WIRING {
        let ports = (0..replicas).map(|_| free_port()).collect::<Result<Vec<_>>>()?;
        let replicas: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let proxy = Proxy::among(replicas.clone()).await?;
        let address = proxy.address().to_string();
        if let Some(name) = wiring.url {
            shared.push((name.to_owned(), format!("http://{address}")));
        } else if wiring.role == "gateway" {
            public = address;
        }
        proxies.insert((wiring.role, To::Service), proxy);
        addresses.insert(wiring.role, replicas);
    }
    let mut instances = Vec::new();
    for wiring in &WIRING {
        let mut variables = shared.clone();
        if let Some((name, schema)) = wiring.database {
            let postgres = Proxy::to(backends.postgres_address().unwrap_or_default()).await?;
            variables.push((name.to_owned(), database_url(schema, &postgres.address().to_string())?));
            proxies.insert((wiring.role, To::Postgres), postgres);
            let rabbit = Proxy::to(backends.rabbit_address().unwrap_or_default()).await?;
            let url = backends.amqp_url_at(&rabbit.address().to_string())?;
            variables.push(("ASSAY_BUS__URL".to_owned(), url));
            proxies.insert((wiring.role, To::Rabbit), rabbit);
        }
        for (index, address) in addresses[wiring.role].iter().enumerate() {
            let mut variables = variables.clone();
            variables.push((wiring.listen.to_owned(), address.clone()));
            let arguments = vec![wiring.role.to_owned()];
            instances.push(Instance::new(wiring.role, index + 1, address.clone(), arguments, variables));
        }
    }
    Ok((Links { proxies, public }, instances))
}
