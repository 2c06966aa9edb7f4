//! Sending one conversation or agent, and what the gateway said about it.

use anyhow::{Context, Result};
use reqwest::{Method, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::items::Item;
use crate::api::{Api, Call, Problem};

/// What the gateway said, for good.
pub enum Answer {
    /// Created or accepted, with the id that the service gave it.
    Accepted { id: String },
    /// It exists already.
    Duplicate,
    /// It will never be accepted as it is.
    Refused(Refusal),
}

/// Why an item was refused.
#[derive(Debug, Serialize)]
pub struct Refusal {
    /// Of the answer; none for what was not sent at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Value>,
}

impl Refusal {
    /// Of an item that cannot be made a request.
    pub fn unmappable(reason: String) -> Self {
        Self { status: None, code: Some("unmappable".to_owned()), detail: Some(reason), errors: None }
    }

    /// In a line.
    pub fn describe(&self) -> String {
        let status = self.status.map(|status| format!("{status} ")).unwrap_or_default();
        format!("{status}{}", self.detail.as_deref().unwrap_or("without an explanation"))
    }
}

/// Sends an item until there is an answer that counts. A refused key ends the import: no other item would fare better.
/// `run` names the import: the same item of the same import is answered once, that of a later import anew.
pub async fn send(api: &Api, path: &str, run: &str, item: &Item) -> Result<Answer> {
    let request = match &item.request {
        Ok(request) => request,
        Err(reason) => return Ok(Answer::Refused(Refusal::unmappable(reason.clone()))),
    };
    let key = format!("assay-import-{run}-{}-{}", item.place, item.fingerprint());
    let call =
        Call { method: Method::POST, path, body: Some(request.body.clone()), idempotency_key: Some(&key) };
    read_answer(api.send(&call).await?).await
}

/// What is read of an answer.
#[derive(Deserialize)]
struct Created {
    id: String,
}

async fn read_answer(response: Response) -> Result<Answer> {
    if response.status().is_success() {
        let Created { id } = response.json().await.context("the answer cannot be read")?;
        return Ok(Answer::Accepted { id });
    }
    let problem = Problem::read(response).await;
    if problem.is_about_the_key() {
        return Err(problem.into_error());
    }
    if problem.is("duplicate-import") || problem.is("duplicate-agent") {
        return Ok(Answer::Duplicate);
    }
    Ok(Answer::Refused(Refusal {
        status: Some(problem.status.as_u16()),
        code: problem.code,
        detail: problem.detail,
        errors: problem.errors,
    }))
}
