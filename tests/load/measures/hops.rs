//! What the way through the gateway costs: the same requests sent to the gateway and, with a service token, to ingest
//! itself. Ticket reads also beside PostgreSQL answering the same rows.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use anyhow::{Result, ensure};
use assay_contracts::tenant::{Scopes, Tenant};
use assay_platform::auth::{Audience, ServiceClaims};

use super::Pace;
use super::accepting::{Accepting, CONNECTIONS};
use crate::client::{Load, Requests, write_request};
use crate::conversations::Conversations;
use crate::limits::select::{STATEMENTS, Selects};
use crate::report::{Goal, Report, Row};
use crate::site::{Servers, Site};

const DATABASE: &str = "hops";
/// Tickets that are read and imported again.
const KNOWN: u64 = 1_000;
const WARM_UP: Duration = Duration::from_secs(1);
/// Of pgbench, as for imports.
const CLIENTS: usize = 16;

/// What the service selects of a ticket.
const SELECT: &str = "SELECT external_id, subject, created_at FROM ingest.conversations";

/// The same requests on both ways.
struct Ways {
    what: &'static str,
    status: u16,
    through_gateway: Load,
    directly: Load,
}

pub async fn measure(
    servers: &Servers,
    conversations: &Arc<Conversations>,
    pace: Pace,
    report: &mut Report,
) -> Result<()> {
    let Accepting { site, load } = Accepting::start(servers, conversations, DATABASE).await?;
    let ids =
        servers.texts(DATABASE, &format!("SELECT id FROM ingest.conversations ORDER BY id LIMIT {KNOWN}"))?;
    ensure!(ids.len() as u64 == KNOWN, "only {} tickets were imported while warming up", ids.len());
    let direct = Direct::to_ingest(servers, &site)?;
    let all = [
        imports(&site, &direct, conversations, load)?,
        duplicates(&site, &direct, conversations)?,
        tickets(&site, &direct, &ids)?,
    ];
    let selects: Vec<String> =
        ids.iter().take(STATEMENTS).map(|id| format!("{SELECT} WHERE id = '{id}'")).collect();
    let selects = Selects::prepare(servers, DATABASE, "tickets", &selects)?;
    for ways in all {
        let (mut through_gateway, mut directly, mut selected) = (vec![], vec![], vec![]);
        ways.through_gateway.as_fast_as_possible(WARM_UP).await?.only(ways.status)?;
        ways.directly.as_fast_as_possible(WARM_UP).await?.only(ways.status)?;
        for _ in 0..pace.rounds {
            directly.push(rate(&ways.directly, &ways, pace).await?);
            through_gateway.push(rate(&ways.through_gateway, &ways, pace).await?);
            if ways.status == 200 {
                selected.push(selects.per_second(CLIENTS, pace.time)?);
            }
        }
        let what = format!("{} through the gateway, {CONNECTIONS} clients", ways.what);
        let limit = ("ingest called directly", &directly[..]);
        report.add(Row::beside("d", what, "/s", &through_gateway, limit, Goal::Ratio(0.5)));
        if !selected.is_empty() {
            let limit = ("pgbench selecting the same rows, 16 clients", &selected[..]);
            report.add(Row::beside("d", "the same", "/s", &through_gateway, limit, Goal::None));
        }
    }
    Ok(())
}

async fn rate(load: &Load, ways: &Ways, pace: Pace) -> Result<f64> {
    Ok(load.as_fast_as_possible(pace.time).await?.only(ways.status)?.per_second(ways.status))
}

/// Where ingest listens, and what opens its door.
struct Direct {
    address: String,
    claims: ServiceClaims,
}

impl Direct {
    fn to_ingest(servers: &Servers, site: &Site) -> Result<Self> {
        let query = "SELECT organization_id FROM ingest.conversations LIMIT 1";
        let organization_id = servers.texts(DATABASE, query)?.concat().parse()?;
        let claims = ServiceClaims::Tenant(Tenant { organization_id, scopes: Scopes::default_for_keys() });
        Ok(Self { address: site.address("ingest")?.to_owned(), claims })
    }

    fn token(&self, site: &Site) -> Result<impl Fn() -> String + Send + Sync + 'static> {
        site.service_bearer(Audience::Ingest, self.claims.clone())
    }
}

fn imports(
    site: &Site,
    direct: &Direct,
    conversations: &Arc<Conversations>,
    through_gateway: Load,
) -> Result<Ways> {
    let path = "/internal/v1/conversations";
    let requests = conversations.imports(path, "directly", direct.token(site)?);
    let directly = load(&direct.address, requests);
    Ok(Ways { what: "imports", status: 202, through_gateway, directly })
}

fn duplicates(site: &Site, direct: &Direct, conversations: &Arc<Conversations>) -> Result<Ways> {
    let key = site.key();
    // As those that were imported while warming up.
    let again =
        |requests: Requests| -> Requests { Arc::new(move |number, buffer| requests(number % KNOWN, buffer)) };
    let public = again(conversations.imports("/v1/assess", DATABASE, move || key.to_owned()));
    let path = "/internal/v1/conversations";
    let internal = again(conversations.imports(path, DATABASE, direct.token(site)?));
    Ok(Ways {
        what: "duplicate imports refused",
        status: 409,
        through_gateway: load(site.gateway(), public),
        directly: load(&direct.address, internal),
    })
}

fn tickets(site: &Site, direct: &Direct, ids: &[String]) -> Result<Ways> {
    let key = site.key();
    let public = reads("/v1/tickets/", ids, move || key.to_owned());
    let internal = reads("/internal/v1/tickets/", ids, direct.token(site)?);
    Ok(Ways {
        what: "ticket reads",
        status: 200,
        through_gateway: load(site.gateway(), public),
        directly: load(&direct.address, internal),
    })
}

fn reads(path: &str, ids: &[String], bearer: impl Fn() -> String + Send + Sync + 'static) -> Requests {
    let paths: Vec<String> = ids.iter().map(|id| format!("{path}{id}")).collect();
    Arc::new(move |number, buffer| {
        let path = &paths[number as usize % paths.len()];
        write_request(buffer, "GET", path, &bearer(), None);
    })
}

fn load(address: &str, requests: Requests) -> Load {
    let address = address.to_owned();
    Load { address, connections: CONNECTIONS, requests, next: Arc::new(AtomicU64::new(0)) }
}
