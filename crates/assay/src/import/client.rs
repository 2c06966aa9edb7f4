//! Sends one conversation or agent and interprets the response.

use anyhow::{Context, Result};
use reqwest::{Method, Response};
use serde::Deserialize;

use super::item::{Item, Refusal};
use crate::api::{Api, Call, Problem};

/// A final answer of the gateway.
pub enum Answer {
    /// Created or accepted, with its id.
    Accepted {
        id: String,
    },
    Duplicate,
    /// A retry would not change it.
    Refused(Refusal),
}

/// Sends an item. A refused API key is an error that ends the import. `import_id` is part of the idempotency key:
/// a retry within one import gets the first answer, a later import does not.
pub async fn send(api: &Api, path: &str, import_id: &str, item: &Item) -> Result<Answer> {
    let request = match &item.request {
        Ok(request) => request,
        Err(reason) => return Ok(Answer::Refused(Refusal::unmappable(reason.clone()))),
    };
    let key = format!("assay-import-{import_id}-{}-{}", item.position, item.fingerprint());
    let call =
        Call { method: Method::POST, path, body: Some(request.body.clone()), idempotency_key: Some(&key) };
    read_answer(api.send(&call).await?).await
}

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
    if problem.is_key_rejected() {
        return Err(problem.into_error());
    }
    if problem.has_code("duplicate-import") || problem.has_code("duplicate-agent") {
        return Ok(Answer::Duplicate);
    }
    Ok(Answer::Refused(problem.into()))
}
