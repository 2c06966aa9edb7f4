//! A webhook receiver: an HTTP server that verifies messages with the official library of Standard Webhooks.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use anyhow::{Result, ensure};
use assay_platform::runtime::LockExt as _;
use assay_testkit::stub_server::{Request, StubServer, respond};
use reqwest::header::HeaderMap;
use serde_json::Value;
use standardwebhooks::Webhook;

use super::until;

/// A running receiver. Dropping it stops it.
pub struct Receiver {
    server: StubServer,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    messages: Mutex<Vec<Message>>,
    answers: Mutex<VecDeque<String>>,
}

#[derive(Debug, Clone)]
pub struct Message {
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Vec<u8>,
}

impl Message {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The payload, if the official library verifies the message with this secret.
    pub fn verified(&self, secret: &str) -> Result<Value> {
        Webhook::new(secret)?.verify(&self.body, &self.headers)?;
        Ok(serde_json::from_slice(&self.body)?)
    }

    /// The payload, unchecked.
    pub fn payload(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Receiver {
    /// Starts a receiver on a free port.
    pub fn start() -> Result<Self> {
        Self::at("127.0.0.1:0".parse()?)
    }

    /// Starts a receiver on this port.
    pub fn at(address: SocketAddr) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let serving = shared.clone();
        let server =
            StubServer::start_at(address, move |request, connection| serving.serve(request, connection))?;
        Ok(Self { server, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The endpoint URL.
    pub fn url(&self) -> String {
        format!("http://{}/hooks?of=test", self.address())
    }

    /// Queues responses for the next messages; without a queued one the receiver answers 204. A response is a status code
    /// with reason, optionally followed by header lines.
    pub fn answer_next(&self, answers: &[&str]) {
        self.shared.answers.locked().extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    pub fn messages(&self) -> Vec<Message> {
        self.shared.messages.locked().clone()
    }

    /// Waits for `count` messages that satisfy the condition.
    pub async fn await_messages(
        &self,
        what: &str,
        count: usize,
        condition: impl Fn(&Message) -> bool,
    ) -> Result<Vec<Message>> {
        until(what, async || {
            let found: Vec<Message> = self.messages().into_iter().filter(&condition).collect();
            Ok((found.len() >= count).then_some(found))
        })
        .await
    }
}

impl Shared {
    fn serve(&self, request: Request, connection: &mut TcpStream) -> Result<()> {
        let Request { line, headers, body } = request;
        ensure!(line.starts_with("POST /hooks?of=test HTTP/1.1"), "{line}");
        let answer = {
            // The answers are in the order of the messages.
            let mut messages = self.messages.locked();
            messages.push(Message { headers, body });
            self.answers.locked().pop_front()
        };
        respond(connection, answer.as_deref().unwrap_or("204 No Content"), "")
    }
}
