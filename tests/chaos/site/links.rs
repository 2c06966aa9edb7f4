//! The ways between the processes: each has a proxy of its own, so that it can be cut, frozen or slow while the others are
//! not. Those to services spread connections over the replicas, as a Service of Kubernetes does.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use assay_testkit::free_port;
use assay_testkit::proxy::{Proxy, Weather};

use super::backends::{Backends, database_url};
use super::{Instance, ROLES};

/// Where a way leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum To {
    Postgres,
    Rabbit,
    /// The HTTP of the role that it is named after, whoever calls.
    Service,
}

/// A way: of a role to a server, or of everybody to a role.
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

/// All ways.
pub struct Links {
    proxies: BTreeMap<Link, Proxy>,
    public: String,
}

impl Links {
    /// Where clients connect.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// The ways that there are.
    pub fn all(&self) -> Vec<Link> {
        self.proxies.keys().copied().collect()
    }

    pub fn set(&self, link: Link, weather: Weather) {
        if let Some(proxy) = self.proxies.get(&link) {
            proxy.set(weather);
        }
    }

    /// Everybody's way to a server.
    pub fn set_all(&self, to: To, weather: Weather) {
        self.proxies.iter().filter(|((_, way), _)| *way == to).for_each(|(_, proxy)| proxy.set(weather));
    }

    pub fn heal(&self) {
        self.proxies.values().for_each(Proxy::heal);
    }

    /// Follows servers that came back on another port.
    pub fn aim(&self, backends: &Backends) {
        for ((_, to), proxy) in &self.proxies {
            let server = match to {
                To::Postgres => backends.postgres_address(),
                To::Rabbit => backends.rabbit_address(),
                To::Service => None,
            };
            if let Some(server) = server {
                proxy.aim(server);
            }
        }
    }
}

/// One process, reached directly.
pub async fn standalone(data: &Path) -> Result<(Links, Vec<Instance>)> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let arguments = ["standalone", "--listen", &address, "--data-dir", &data.display().to_string()]
        .map(str::to_owned)
        .to_vec();
    let instance = Instance::new("standalone", 1, address.clone(), arguments, Vec::new());
    Ok((Links { proxies: BTreeMap::new(), public: address }, vec![instance]))
}

/// So many processes of every role, with a proxy on every way.
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
