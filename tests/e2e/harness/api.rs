//! A client of the public API.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_platform::http_client::client_builder;
use reqwest::{Client, Method, RequestBuilder, redirect};
use serde_json::{Value, json};

use super::reply::Reply;
use super::table::Table;
use super::until;

/// A client with one key. It follows no redirects.
#[derive(Debug, Clone)]
pub struct Api {
    http: Client,
    base_url: String,
    key: Option<String>,
}

impl Api {
    pub fn new(base_url: &str, key: Option<&str>) -> Result<Self> {
        let http = client_builder()
            .redirect(redirect::Policy::none())
            .timeout(Duration::from_secs(30))
            .no_proxy()
            .build()?;
        Ok(Self { http, base_url: base_url.to_owned(), key: key.map(str::to_owned) })
    }

    /// A request with the key; `path` may also be a full URL.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let address =
            if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base_url) };
        let request = self.http.request(method, address);
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Sends a request and reads its answer.
    pub async fn reply(&self, request: RequestBuilder) -> Result<Reply> {
        let request = request.build()?;
        let request_line = format!("{} {}", request.method(), request.url().path());
        let response = self.http.execute(request).await.with_context(|| request_line.clone())?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.with_context(|| format!("{request_line}: body"))?.to_vec();
        Ok(Reply { request_line, status, headers, body })
    }

    pub async fn get(&self, path: &str) -> Result<Reply> {
        self.reply(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Result<Reply> {
        self.reply(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.reply(self.request(Method::POST, path).json(body)).await
    }

    /// `POST` of any bytes, declared as JSON.
    pub async fn post_bytes(&self, path: &str, body: impl Into<Vec<u8>>) -> Result<Reply> {
        let request = self.request(Method::POST, path).header("content-type", "application/json");
        self.reply(request.body(body.into())).await
    }

    /// Imports a conversation and returns its ticket id.
    pub async fn import(&self, conversation: &Value) -> Result<String> {
        let receipt = self.post("/v1/assess", conversation).await?.expect(202)?;
        text(&receipt, "id")
    }

    /// Registers an AI agent and returns its id.
    pub async fn register(&self, external_id: &str) -> Result<String> {
        let agent = json!({"external_id": external_id, "name": format!("Agent {external_id}")});
        text(&self.post("/v1/agents", &agent).await?.expect(201)?, "id")
    }

    /// Waits for a ticket's evaluation.
    pub async fn evaluation(&self, ticket_id: &str) -> Result<Value> {
        until(&format!("the evaluation of {ticket_id}"), async || {
            let evaluation = self.get(&format!("/v1/tickets/{ticket_id}/evaluation")).await?.expect(200)?;
            Ok((evaluation["status"] != "pending").then_some(evaluation))
        })
        .await
    }

    /// Waits until the list of evaluations with this parameter has so many.
    pub async fn await_listed(&self, parameter: (&str, &str), count: usize) -> Result<()> {
        until(&format!("{count} evaluations in the list with {parameter:?}"), async || {
            let request = self.request(Method::GET, "/v1/evaluations").query(&[parameter]);
            let page = self.reply(request).await?.expect(200)?;
            Ok((page["total"]["count"] == json!(count)).then_some(()))
        })
        .await
    }

    /// Creates an export and waits until it is complete.
    pub async fn export(&self, request: &Value) -> Result<Value> {
        let created = self.post("/v1/evaluations/exports", request).await?.expect(201)?;
        self.await_complete(&text(&created, "id")?).await
    }

    /// Waits for a complete export. Fails on an undocumented state transition.
    pub async fn await_complete(&self, export_id: &str) -> Result<Value> {
        let mut highest = 0;
        until(&format!("export {export_id}"), async || {
            let export = self.get(&format!("/v1/evaluations/exports/{export_id}")).await?.expect(200)?;
            let rank =
                ["pending", "running", "complete"].iter().position(|status| export["status"] == *status);
            let rank = rank.with_context(|| format!("unexpected status: {export}"))?;
            ensure!(rank >= highest, "went back: {export}");
            highest = rank;
            let is_complete = rank == 2;
            ensure!(export.get("download_url").is_some() == is_complete, "download_url: {export}");
            ensure!(export.get("error_message").is_none(), "error_message: {export}");
            Ok(is_complete.then_some(export))
        })
        .await
    }

    /// The file of a complete export.
    pub async fn file(&self, export: &Value) -> Result<Vec<u8>> {
        let reply = self.get(&text(export, "download_url")?).await?;
        reply.expect_status(200)?;
        Ok(reply.body)
    }

    /// The rows of an export that is created for them.
    pub async fn table(&self, request: &Value) -> Result<Table> {
        Table::read(&self.file(&self.export(request).await?).await?)
    }
}

/// Checks that an object has exactly these members, named in one text.
pub fn expect_members(object: &Value, names: &str) -> Result<()> {
    let members: BTreeSet<&str> =
        object.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    ensure!(members == names.split(' ').collect(), "members: {members:?}");
    Ok(())
}

/// A member that must be a text.
pub fn text(object: &Value, member: &str) -> Result<String> {
    Ok(object[member].as_str().with_context(|| format!("no `{member}` in {object}"))?.to_owned())
}
