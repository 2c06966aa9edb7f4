//! A webhook receiver: an HTTP server that verifies messages with the official library of Standard Webhooks.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use assay_platform::runtime::LockExt as _;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use standardwebhooks::Webhook;

use super::until;

/// A running receiver. Dropping it stops it.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    messages: Mutex<Vec<Message>>,
    answers: Mutex<VecDeque<String>>,
    is_over: AtomicBool,
}

/// A received message.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Vec<u8>,
}

impl Message {
    /// A header's text.
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
        let listener = TcpListener::bind(address).context("no port for the receiver")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let accepting = shared.clone();
        let listener = thread::Builder::new().name("receiver".to_owned()).spawn(move || {
            for connection in listener.incoming().flatten() {
                if accepting.is_over.load(Ordering::SeqCst) {
                    break;
                }
                // Errors are ignored: the client may have closed the connection.
                let _ = accepting.serve(connection);
            }
        })?;
        Ok(Self { address, shared, listener: Some(listener) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint URL.
    pub fn url(&self) -> String {
        format!("http://{}/hooks?of=test", self.address)
    }

    /// Queues responses for the next messages; without a queued one the receiver answers 204. A response is a status code
    /// with reason, optionally followed by header lines.
    pub fn answer_next(&self, answers: &[&str]) {
        self.shared.answers.locked().extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    /// All received messages.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.messages.locked().clone()
    }

    /// The received messages of this type.
    pub fn of_type(&self, event: &str) -> Vec<Message> {
        self.messages().into_iter().filter(|message| message.payload()["type"] == event).collect()
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

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the listener; it fails if the listener has ended already.
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Shared {
    fn serve(&self, mut connection: TcpStream) -> Result<()> {
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        let (request_line, message) = read_request(&connection)?;
        ensure!(request_line.starts_with("POST /hooks?of=test HTTP/1.1"), "{request_line}");
        let answer = self.answers.locked().pop_front().unwrap_or_else(|| "204 No Content".to_owned());
        self.messages.locked().push(message);
        write!(connection, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")?;
        Ok(())
    }
}

/// Reads the next request of a client: its request line, and its headers and body.
pub fn read_request(connection: &TcpStream) -> Result<(String, Message)> {
    let mut reader = BufReader::new(connection);
    let mut lines = reader.by_ref().lines();
    let request_line = lines.next().context("the connection is over")??;
    let mut headers = HeaderMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.append(HeaderName::try_from(name)?, HeaderValue::from_str(value.trim())?);
    }
    let length = headers.get("content-length").context("no length")?.to_str()?.parse()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok((request_line, Message { headers, body }))
}
