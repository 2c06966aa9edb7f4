//! A client of the documented public API. Its callers record every answer in the journal.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use assay_platform::http_client::client_builder;
use reqwest::{Client as Http, RequestBuilder, Response, redirect};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Request timeout. Longer than every deadline of the service: a timeout is a violation.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Done by this request or an earlier one, with the id from the response.
    Done { status: u16, id: String },
    /// Refused, with the problem's code.
    Refused { status: u16, code: String, retry_after: bool },
    /// No response: the connection was refused or cut, or the request timed out.
    Silent { why: &'static str },
}

impl Answer {
    /// Label for counting failures; `None` for a success.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Done { .. } => None,
            Self::Refused { status, code, .. } => Some(format!("{status} {code}")),
            Self::Silent { why } => Some((*why).to_owned()),
        }
    }
}

/// A client with one key.
///
/// It sends on a thread of its own: on several threads `hyper` can lose a request whose connection ends while it is handed over,
/// and the request waits for its timeout (<https://github.com/hyperium/hyper/issues/4122>).
#[derive(Clone)]
pub struct Client {
    http: Http,
    base_url: String,
    key: &'static str,
    thread: Handle,
    /// The thread ends when all clones are dropped.
    _running: Arc<oneshot::Sender<()>>,
}

impl Client {
    pub fn new(base_url: &str, key: &'static str) -> Result<Self> {
        let http = client_builder().redirect(redirect::Policy::none()).timeout(TIMEOUT).no_proxy().build()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let thread = runtime.handle().clone();
        let (running, ended) = oneshot::channel();
        thread::spawn(move || runtime.block_on(ended));
        Ok(Self { http, base_url: base_url.to_owned(), key, thread, _running: Arc::new(running) })
    }

    /// Imports a conversation. A duplicate counts as done: the response names the ticket.
    pub async fn assess(&self, body: &Value) -> Answer {
        self.answer_of(self.http.post(self.address("/v1/assess")).json(body), "ticket_id").await
    }

    pub async fn register(&self, agent: &Value) -> Answer {
        self.answer_of(self.http.post(self.address("/v1/agents")).json(agent), "agent_id").await
    }

    /// Creates an export; the idempotency key makes retries safe.
    pub async fn create_export(&self, kind: &str, key: &str) -> Answer {
        let request = self.http.post(self.address("/v1/evaluations/exports")).header("idempotency-key", key);
        // A 409 names no export: without an id it counts as a violation.
        self.answer_of(request.json(&json!({"kind": kind})), "").await
    }

    /// Deletes a ticket. 404 counts as done.
    pub async fn delete(&self, ticket_id: &str) -> Answer {
        let address = self.address(&format!("/v1/tickets/{ticket_id}"));
        match self.send(self.http.delete(address)).await {
            Ok(response) if matches!(response.status().as_u16(), 204 | 404) => {
                Answer::Done { status: response.status().as_u16(), id: ticket_id.to_owned() }
            }
            Ok(response) => refusal(response).await,
            Err(answer) => answer,
        }
    }

    /// Reads a resource: the body of a 200, else the answer.
    pub async fn read(&self, path: &str) -> Result<Value, Answer> {
        let response = self.get(&self.address(path)).await?;
        response.json().await.map_err(|error| Answer::Silent { why: why(&error) })
    }

    /// Downloads a complete file.
    pub async fn fetch(&self, address: &str) -> Result<Vec<u8>, Answer> {
        let bytes = self.get(address).await?.bytes().await;
        bytes.map(|bytes| bytes.to_vec()).map_err(|error| Answer::Silent { why: why(&error) })
    }

    async fn get(&self, address: &str) -> Result<Response, Answer> {
        let response = self.send(self.http.get(address)).await?;
        if response.status() == 200 { Ok(response) } else { Err(refusal(response).await) }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Answer> {
        let sent = self.thread.spawn(request.bearer_auth(self.key).send()).await;
        let response = sent.map_err(|_| Answer::Silent { why: "client failed" })?;
        response.map_err(|error| Answer::Silent { why: why(&error) })
    }

    /// The answer to a request that creates something; a 409 has the id of what exists in `duplicate_id_field`.
    async fn answer_of(&self, request: RequestBuilder, duplicate_id_field: &str) -> Answer {
        let response = match self.send(request).await {
            Ok(response) => response,
            Err(answer) => return answer,
        };
        let status = response.status().as_u16();
        if !matches!(status, 201 | 202 | 409) {
            return refusal(response).await;
        }
        match response.json::<Value>().await {
            Ok(body) => {
                let id =
                    body.get(if status == 409 { duplicate_id_field } else { "id" }).and_then(Value::as_str);
                Answer::Done { status, id: id.unwrap_or_default().to_owned() }
            }
            Err(error) => Answer::Silent { why: why(&error) },
        }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}

async fn refusal(response: Response) -> Answer {
    let status = response.status().as_u16();
    let retry_after = response.headers().contains_key("retry-after");
    let problem: Value = response.json().await.unwrap_or_default();
    let code = problem["code"].as_str().unwrap_or("no problem object").to_owned();
    Answer::Refused { status, code, retry_after }
}

fn why(error: &reqwest::Error) -> &'static str {
    if error.is_connect() {
        "connection refused"
    } else if error.is_timeout() {
        "no answer in time"
    } else {
        "connection cut"
    }
}
