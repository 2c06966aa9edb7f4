//! Pages of the console in a session.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use assay_contracts::conversation::MAX_MESSAGES;
use assay_contracts::ids::TicketId;
use assay_platform::http_client::client_builder;
use reqwest::header::{COOKIE, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, Method};
use serde_json::{Value, json};

use super::latency::Latencies;
use crate::cluster::Cluster;

pub struct Pages {
    client: Client,
    base: String,
    session: String,
}

impl Pages {
    /// Signs in with a sign-in link.
    pub async fn sign_in(cluster: &Cluster) -> Result<Self> {
        let client = client_builder().redirect(Policy::none()).build()?;
        let link = cluster.console_link().await?;
        let answer = client.get(&link).header("sec-fetch-site", "none").send().await?;
        let cookies = answer.headers().get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        let session =
            cookies.filter_map(|cookie| cookie.split(';').next()).find(|pair| pair.contains("session"));
        let session = session.with_context(|| format!("no session: {}", answer.status()))?.to_owned();
        Ok(Self { client, base: format!("http://{}", cluster.gateway()), session })
    }

    /// `repeats` rounds over these pages.
    pub async fn latencies(&self, pages: &[String], repeats: usize) -> Result<Latencies> {
        let mut latencies = Latencies::default();
        for _ in 0..repeats {
            for page in pages {
                let began = Instant::now();
                let request = self.client.get(format!("{}{page}", self.base)).header(COOKIE, &self.session);
                let answer = request.send().await?;
                let (status, text) = (answer.status(), answer.text().await?);
                ensure!(status == 200 && text.contains("</html>"), "{page}: {status}");
                latencies.add(page, began);
            }
        }
        Ok(latencies)
    }
}

/// Imports a conversation of the maximum length with this agent, and waits until it is evaluated.
pub async fn import_longest(cluster: &Cluster, agent: &str) -> Result<TicketId> {
    let message = |number: usize| {
        let author = if number.is_multiple_of(2) {
            json!({"type": "contact", "external_id": "customer"})
        } else {
            json!({"type": "ai", "external_id": agent})
        };
        json!({
            "external_id": format!("m-{number}"), "kind": "message", "author": author,
            "timestamp": 1_790_000_000_000_i64 + 60_000 * number as i64,
            "content": format!("This is message {number} of a long conversation. ").repeat(12),
        })
    };
    let messages: Vec<Value> = (0..MAX_MESSAGES).map(message).collect();
    let body = json!({"ticket_id": "longest", "source": "bench", "subject": "Long", "messages": messages});
    let (status, receipt) = cluster.call(Method::POST, "/v1/assess", Some(&body)).await?;
    ensure!(status == 202, "the longest conversation is refused: {status} {receipt}");
    let id: TicketId = receipt["id"].as_str().context("a receipt without an id")?.parse()?;
    // Answered 200 once the read model has the evaluation.
    let path = format!("/v1/tickets/{id}/neighbours");
    let end = Instant::now() + super::stored::EVALUATION_LIMIT;
    while cluster.call(Method::GET, &path, None).await?.0 != 200 {
        ensure!(Instant::now() < end, "the longest conversation is not evaluated");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Ok(id)
}
