//! Overhead of the gateway: the same requests sent to the gateway and, with a service token, directly to ingest. Ticket
//! reads are also compared with PostgreSQL alone.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use assay_contracts::tenant::{Scopes, Tenant};
use assay_platform::auth::{Audience, ServiceClaims};

use super::accepting::{Accepting, CONNECTIONS};
use super::{Bench, Pace};
use crate::baselines::select::{MAX_STATEMENTS, Selects};
use crate::client::{Load, Requests, write_request};
use crate::cluster::{Cluster, KEY, Servers};
use crate::conversations::Conversations;
use crate::report::{Goal, Report};

const DATABASE: &str = "hops";
/// Tickets that are read and imported again.
const KNOWN: u64 = 1_000;
const WARM_UP: Duration = Duration::from_secs(1);
/// Clients of pgbench, as for imports.
const CLIENTS: usize = 16;

/// The service's query for a ticket.
const SELECT: &str = "SELECT external_id, subject, created_at FROM ingest.conversations";

/// The same requests by both paths.
struct Paths {
    what: &'static str,
    status: u16,
    through_gateway: Load,
    directly: Load,
}

pub async fn measure(Bench { servers, conversations, pace }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("hops");
    let Accepting { cluster, load } = Accepting::start(servers, conversations, DATABASE).await?;
    let ids =
        servers.texts(DATABASE, &format!("SELECT id FROM ingest.conversations ORDER BY id LIMIT {KNOWN}"))?;
    ensure!(ids.len() as u64 == KNOWN, "only {} tickets were imported while warming up", ids.len());
    let direct = Direct::to_ingest(servers, &cluster)?;
    let all = [
        imports(&cluster, &direct, conversations, load)?,
        duplicates(&cluster, &direct, conversations)?,
        tickets(&cluster, &direct, &ids)?,
    ];
    let selects: Vec<String> =
        ids.iter().take(MAX_STATEMENTS).map(|id| format!("{SELECT} WHERE id = '{id}'")).collect();
    let selects = Selects::prepare(servers, DATABASE, "tickets", &selects)?;
    for paths in all {
        let (mut through_gateway, mut directly, mut selected) = (vec![], vec![], vec![]);
        paths.through_gateway.closed_loop(WARM_UP).await?.only(paths.status)?;
        paths.directly.closed_loop(WARM_UP).await?.only(paths.status)?;
        for _ in 0..pace.rounds {
            directly.push(rate(&paths.directly, &paths, pace).await?);
            through_gateway.push(rate(&paths.through_gateway, &paths, pace).await?);
            // Only reads of tickets are answered 200.
            if paths.status == 200 {
                selected.push(selects.per_second(CLIENTS, pace.time)?);
            }
        }
        let what = format!("{} through the gateway, {CONNECTIONS} clients", paths.what);
        let baseline = ("ingest called directly", &directly[..]);
        report.compare(what, "/s", &through_gateway, baseline, Goal::Ratio(0.5));
        if !selected.is_empty() {
            let baseline = ("pgbench selecting the same rows, 16 clients", &selected[..]);
            report.compare("the same", "/s", &through_gateway, baseline, Goal::None);
        }
    }
    Ok(())
}

async fn rate(load: &Load, paths: &Paths, pace: Pace) -> Result<f64> {
    Ok(load.closed_loop(pace.time).await?.only(paths.status)?.per_second(paths.status))
}

/// Address of ingest and service tokens for it.
struct Direct {
    address: String,
    claims: ServiceClaims,
}

impl Direct {
    fn to_ingest(servers: &Servers, cluster: &Cluster) -> Result<Self> {
        let query = "SELECT organization_id FROM ingest.conversations LIMIT 1";
        let organization_id = servers.texts(DATABASE, query)?.concat().parse()?;
        let claims = ServiceClaims::Tenant(Tenant { organization_id, scopes: Scopes::default_for_keys() });
        Ok(Self { address: cluster.address("ingest")?.to_owned(), claims })
    }

    fn token(&self, cluster: &Cluster) -> Result<impl Fn() -> String + Send + Sync + 'static> {
        cluster.service_bearer(Audience::Ingest, self.claims.clone())
    }
}

fn imports(
    cluster: &Cluster,
    direct: &Direct,
    conversations: &Arc<Conversations>,
    through_gateway: Load,
) -> Result<Paths> {
    let path = "/internal/v1/conversations";
    let requests = conversations.imports(path, "directly", direct.token(cluster)?);
    let directly = Load::new(&direct.address, CONNECTIONS, requests);
    Ok(Paths { what: "imports", status: 202, through_gateway, directly })
}

fn duplicates(cluster: &Cluster, direct: &Direct, conversations: &Arc<Conversations>) -> Result<Paths> {
    // The ids that were imported during the warm-up.
    let again =
        |requests: Requests| -> Requests { Arc::new(move |number, buffer| requests(number % KNOWN, buffer)) };
    let public = again(conversations.imports("/v1/assess", DATABASE, || KEY.to_owned()));
    let path = "/internal/v1/conversations";
    let internal = again(conversations.imports(path, DATABASE, direct.token(cluster)?));
    Ok(Paths {
        what: "duplicate imports refused",
        status: 409,
        through_gateway: Load::new(cluster.gateway(), CONNECTIONS, public),
        directly: Load::new(&direct.address, CONNECTIONS, internal),
    })
}

fn tickets(cluster: &Cluster, direct: &Direct, ids: &[String]) -> Result<Paths> {
    let public = reads("/v1/tickets/", ids, || KEY.to_owned());
    let internal = reads("/internal/v1/tickets/", ids, direct.token(cluster)?);
    Ok(Paths {
        what: "ticket reads",
        status: 200,
        through_gateway: Load::new(cluster.gateway(), CONNECTIONS, public),
        directly: Load::new(&direct.address, CONNECTIONS, internal),
    })
}

fn reads(path: &str, ids: &[String], bearer: impl Fn() -> String + Send + Sync + 'static) -> Requests {
    let paths: Vec<String> = ids.iter().map(|id| format!("{path}{id}")).collect();
    Arc::new(move |number, buffer| {
        let path = &paths[number as usize % paths.len()];
        write_request(buffer, "GET", path, &bearer(), None);
    })
}
