//! The contents of the databases, and the scorer's results for the conversations sent.

use std::collections::{BTreeMap, HashMap, HashSet};

use anyhow::{Context, Result, ensure};
use assay_testkit::query_texts;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::run::example;

pub struct Stored {
    /// Ticket ids by external id.
    pub tickets: BTreeMap<String, Vec<String>>,
    /// Evaluation id and document by ticket id.
    pub evaluations: HashMap<String, (String, Value)>,
}

impl Stored {
    pub fn read(cluster: &Cluster) -> Result<Self> {
        let mut tickets: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let as_text = |column: &str| format!("CAST({column} AS text)");
        let query = format!("SELECT external_id || '|' || {} AS value FROM conversations", as_text("id"));
        for row in query_texts(&cluster.database("ingest")?, &query)? {
            let (external_id, id) = row.split_once('|').context("no ticket")?;
            tickets.entry(external_id.to_owned()).or_default().push(id.to_owned());
        }
        let mut evaluations = HashMap::new();
        let (ticket, evaluation) = (as_text("ticket_id"), as_text("id"));
        let query = format!(
            "SELECT {ticket} || '|' || {evaluation} || '|' || coalesce(document, 'null') AS value \
             FROM evaluations WHERE deleted_at IS NULL"
        );
        for row in query_texts(&cluster.database("scoring")?, &query)? {
            let mut parts = row.splitn(3, '|');
            let mut part = || parts.next().context("no evaluation");
            let (ticket, id, document) = (part()?.to_owned(), part()?.to_owned(), part()?);
            evaluations.insert(ticket, (id, serde_json::from_str(document)?));
        }
        Ok(Self { tickets, evaluations })
    }

    pub fn ids(&self) -> HashSet<&str> {
        self.tickets.values().flatten().map(String::as_str).collect()
    }
}

/// Results of `assay score` for each template conversation.
pub async fn score_locally(cluster: &Cluster) -> Result<Vec<Value>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("conversations.jsonl");
    std::fs::write(&file, example("conversations.jsonl")?)?;
    let output = cluster.assay(&["score", &file.display().to_string()]).output().await?;
    ensure!(output.status.success(), "assay score: {output:?}");
    let lines = String::from_utf8(output.stdout)?;
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}
