//! Pagination of a long list: the first page, and the page after ten thousand exports.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use reqwest::Method;

use super::Bench;
use crate::baselines::select::Selects;
use crate::client::{Load, write_request};
use crate::cluster::{Cluster, KEY, Servers};
use crate::report::{Goal, Report};

const DATABASE: &str = "lists";
const LIST: &str = "/v1/evaluations/exports";
const DEPTH: u64 = 10_000;
/// The maximum page size, to reach that depth in few requests.
const PAGE: u64 = 100;
/// Few clients, because latency is measured.
const CLIENTS: usize = 4;

const FILL: &str = "
    INSERT INTO export.exports (id, organization_id, kind, status, created_at, updated_at, attempts, object_key, file_bytes,
                                file_rows, file_sha256, file_expires_at)
    SELECT md5('export' || number)::uuid, organization.id, 'axis', 'complete', 1760000000000 + number * 1000,
           1760000000000 + number * 1000, 1, 'none/' || number, 4096, 10, repeat('ab', 32), 4102444800000
    FROM generate_series(1, {count}) AS number, (SELECT id FROM registry.organizations LIMIT 1) AS organization;
    VACUUM ANALYZE export.exports";

/// The service's query for a page of 20; the 21st row tells whether another page follows.
const SELECT: &str = "
    SELECT id, organization_id, kind, filter_from, filter_to, status, created_at, updated_at, object_key, file_bytes,
           file_sha256, file_expires_at, error_message FROM export.exports
    WHERE organization_id = '{organization}' AND created_at <= {moment} AND (created_at < {moment} OR id < '{id}')
    ORDER BY created_at DESC, id DESC LIMIT 21";

pub async fn measure(Bench { servers, pace, .. }: Bench<'_>, report: &mut Report) -> Result<()> {
    report.begin("lists");
    let cluster = Cluster::distributed(servers, DATABASE).await?;
    let fill = FILL.replace("{count}", &(DEPTH + PAGE).to_string());
    for statement in fill.split(';') {
        servers.sql(DATABASE, statement)?;
    }
    let cursor = cursor_at(&cluster, DEPTH).await?;
    let first = pages(&cluster, LIST.to_owned());
    let deep = pages(&cluster, format!("{LIST}?cursor={cursor}"));
    let select_first = select(servers, "first", 0)?;
    let select_deep = select(servers, "deep", DEPTH - 1)?;
    let (mut first_ms, mut deep_ms, mut select_first_ms, mut select_deep_ms) =
        (vec![], vec![], vec![], vec![]);
    for _ in 0..pace.rounds {
        select_first_ms.push(select_first.mean_ms(CLIENTS, pace.time / 2)?);
        first_ms.push(first.closed_loop(pace.time).await?.only(200)?.percentile_ms(0.5));
        deep_ms.push(deep.closed_loop(pace.time).await?.only(200)?.percentile_ms(0.5));
        select_deep_ms.push(select_deep.mean_ms(CLIENTS, pace.time / 2)?);
    }
    let baseline = "pgbench, the same select, mean";
    let what = format!("p50 of the first page of exports, {CLIENTS} clients");
    report.compare(what, "ms", &first_ms, (baseline, &select_first_ms), Goal::None);
    let what = format!("p50 of a page at depth {DEPTH}");
    report.compare(&what[..], "ms", &deep_ms, (baseline, &select_deep_ms), Goal::None);
    report.compare(what, "ms", &deep_ms, ("that of the first page", &first_ms), Goal::None);
    Ok(())
}

/// Follows the cursors, as a client does.
async fn cursor_at(cluster: &Cluster, depth: u64) -> Result<String> {
    let mut path = format!("{LIST}?limit={PAGE}");
    let mut cursor = String::new();
    for _ in 0..depth / PAGE {
        let (status, page) = cluster.call(Method::GET, &path, None).await?;
        ensure!(status == 200, "{path}: {status} {page}");
        let next = page["page_info"]["next_cursor"].as_str();
        cursor = next.with_context(|| format!("no cursor: {}", page["page_info"]))?.to_owned();
        path = format!("{LIST}?limit={PAGE}&cursor={cursor}");
    }
    Ok(cursor)
}

fn pages(cluster: &Cluster, path: String) -> Load {
    let request = move |_: u64, buffer: &mut Vec<u8>| write_request(buffer, "GET", &path, KEY, None);
    Load::new(cluster.gateway(), CLIENTS, Arc::new(request))
}

/// Selects the page after the export at this offset of the list.
fn select<'s>(servers: &'s Servers, name: &str, offset: u64) -> Result<Selects<'s>> {
    let value = |column: &str| -> Result<String> {
        let query = format!(
            "SELECT {column} FROM export.exports ORDER BY created_at DESC, id DESC OFFSET {offset} LIMIT 1"
        );
        Ok(servers.texts(DATABASE, &query)?.concat())
    };
    let statement = SELECT
        .replace("{organization}", &value("organization_id")?)
        .replace("{moment}", &value("created_at")?)
        .replace("{id}", &value("id")?)
        .replace('\n', " ");
    Selects::prepare(servers, DATABASE, name, &[statement])
}
