//! Network links between the processes. Each has its own proxy, so it can be cut, frozen or slowed down independently.
//! Links to services spread connections over the replicas, as a Kubernetes Service does.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use assay_testkit::free_port;
use assay_testkit::launcher::{GATEWAY, Instance, ROLES, Settings};
use assay_testkit::proxy::{LinkState, Proxy};

use super::backends::{Backends, database_url};

/// Target of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub enum Target {
    Postgres,
    Rabbit,
    /// The HTTP server of the role in the link, for all callers.
    Service,
}

/// A link: from a role to a server, or from all callers to a role.
pub type Link = (&'static str, Target);

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
    pub fn set_all(&self, to: Target, state: LinkState) {
        self.proxies.iter().filter(|((_, target), _)| *target == to).for_each(|(_, proxy)| proxy.set(state));
    }

    pub fn heal(&self) {
        self.proxies.values().for_each(Proxy::heal);
    }

    /// Points the links to the servers' current ports.
    pub fn retarget(&self, backends: &Backends) {
        for ((_, to), proxy) in &self.proxies {
            let server = match to {
                Target::Postgres => backends.postgres_address(),
                Target::Rabbit => backends.rabbit_address(),
                Target::Service => None,
            };
            if let Some(server) = server {
                proxy.set_target(server);
            }
        }
    }
}

/// One process without proxies.
pub fn standalone(data: &Path) -> Result<(Links, Vec<Instance>)> {
    let instance = Instance::standalone(data)?;
    Ok((Links { proxies: BTreeMap::new(), public: instance.address().to_owned() }, vec![instance]))
}

/// `replicas` processes of every role, with a proxy on every link.
pub async fn distributed(backends: &Backends, replicas: usize) -> Result<(Links, Vec<Instance>)> {
    let mut proxies = BTreeMap::new();
    let mut role_addresses: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut shared = Settings::new();
    let mut public = String::new();
    for role in ROLES {
        let ports = (0..replicas).map(|_| free_port()).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let proxy = Proxy::among(addresses.clone()).await?;
        let address = proxy.address().to_string();
        if let Some(name) = role.url {
            shared.insert(name.to_owned(), format!("http://{address}"));
        } else if role.name == GATEWAY {
            public = address;
        }
        proxies.insert((role.name, Target::Service), proxy);
        role_addresses.insert(role.name, addresses);
    }
    let mut instances = Vec::new();
    for role in ROLES {
        let mut variables = shared.clone();
        // The roles with a database are those that use the bus.
        if let Some(database) = role.database {
            let postgres = Proxy::to(backends.postgres_address().unwrap_or_default()).await?;
            let url = database_url(database.owner, &postgres.address().to_string());
            variables.insert(database.setting.to_owned(), url);
            proxies.insert((role.name, Target::Postgres), postgres);
            let rabbit = Proxy::to(backends.rabbit_address().unwrap_or_default()).await?;
            let url = backends.amqp_url_at(&rabbit.address().to_string())?;
            variables.insert("ASSAY_BUS__URL".to_owned(), url);
            proxies.insert((role.name, Target::Rabbit), rabbit);
        }
        for (index, address) in role_addresses[role.name].iter().enumerate() {
            let name = format!("{}-{}", role.name, index + 1);
            let instance = Instance::new(role.name, name, address, [role.name.to_owned()])
                .variables(variables.clone())
                .variables([(role.listen.to_owned(), address.clone())]);
            instances.push(instance);
        }
    }
    Ok((Links { proxies, public }, instances))
}
