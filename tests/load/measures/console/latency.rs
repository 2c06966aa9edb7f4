//! Latencies by address.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, ensure};
use reqwest::Method;

use crate::cluster::Cluster;
use crate::report::Report;

/// Milliseconds of every request, by address.
#[derive(Default)]
pub struct Latencies(BTreeMap<String, Vec<f64>>);

impl Latencies {
    /// Requests each of these paths of the API `repeats` times.
    pub async fn of_paths(cluster: &Cluster, paths: &[String], repeats: usize) -> Result<Self> {
        let mut this = Self::default();
        for _ in 0..repeats {
            for path in paths {
                this.ask(cluster, path, path).await?;
            }
        }
        Ok(this)
    }

    /// Requests up to `pages` pages of each list, by following its cursors.
    pub async fn of_pages(cluster: &Cluster, lists: &[String], pages: usize) -> Result<Self> {
        let mut this = Self::default();
        for list in lists {
            let mut path = list.clone();
            for _ in 0..pages {
                let page = this.ask(cluster, list, &path).await?;
                let Some(cursor) = page["page_info"]["next_cursor"].as_str() else { break };
                path = format!("{list}&cursor={cursor}");
            }
        }
        Ok(this)
    }

    async fn ask(&mut self, cluster: &Cluster, name: &str, path: &str) -> Result<serde_json::Value> {
        let began = Instant::now();
        let (status, answer) = cluster.call(Method::GET, path, None).await?;
        ensure!(status == 200, "{path}: {status} {answer}");
        self.add(name, began);
        Ok(answer)
    }

    pub fn add(&mut self, name: &str, began: Instant) {
        self.0.entry(name.to_owned()).or_default().push(began.elapsed().as_secs_f64() * 1e3);
    }

    pub fn p95(&self) -> f64 {
        percentile(self.0.values().flatten().copied().collect(), 0.95)
    }

    /// Notes the median and the ten slowest addresses.
    pub fn note(&self, report: &mut Report, what: &str) {
        let mut slowest: Vec<(f64, &String)> =
            self.0.iter().map(|(path, values)| (percentile(values.clone(), 0.95), path)).collect();
        slowest.sort_by(|one, other| other.0.total_cmp(&one.0));
        let slowest: Vec<String> =
            slowest.iter().take(10).map(|(ms, path)| format!("{ms:.0} ms {path}")).collect();
        let median = percentile(self.0.values().flatten().copied().collect(), 0.5);
        report.note(format!("{what}: p50 {median:.1} ms; slowest p95: {}", slowest.join("; ")));
    }
}

fn percentile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let index = ((values.len() as f64 * share).ceil() as usize).saturating_sub(1);
    values.get(index.min(values.len().saturating_sub(1))).copied().unwrap_or_default()
}
