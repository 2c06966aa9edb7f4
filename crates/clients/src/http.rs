//! The HTTP client that services call each other with: one for each thread.
//!
//! An HTTP server has a runtime for each of its threads. A connection that one thread opened is driven by that thread's
//! runtime, so others would wait for it, wake it up for each of their calls, and lose the connection when its thread ends
//! before theirs. With a client of its own every thread has its own connections, and a call never leaves it.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use thread_local::ThreadLocal;

use super::error::ClientError;
use super::metrics;

/// How long a service may be silent in the middle of its answer.
const SILENCE_DEADLINE: Duration = Duration::from_secs(60);

/// How the HTTP client behaves; one for all services of a process.
#[derive(Debug, Clone, Copy)]
pub struct HttpSettings {
    /// How long connecting may take.
    pub connect_deadline: Duration,
    /// Idle connections kept for each service by each thread.
    pub idle_connections: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { connect_deadline: Duration::from_millis(800), idle_connections: 64 }
    }
}

/// The clients of all threads: they follow no redirects and use no proxy. Cloned freely; all clones are one.
#[derive(Debug, Clone)]
pub struct HttpClient {
    settings: HttpSettings,
    threads: Arc<ThreadLocal<Client>>,
}

/// The HTTP client of a process.
///
/// # Errors
/// When the system's TLS settings cannot be read.
pub fn http_client(settings: HttpSettings) -> Result<HttpClient, ClientError> {
    metrics::describe();
    let client = HttpClient { settings, threads: Arc::default() };
    client.of_this_thread()?;
    Ok(client)
}

impl HttpClient {
    pub(crate) fn of_this_thread(&self) -> Result<&Client, ClientError> {
        self.threads.get_or_try(|| build(self.settings))
    }
}

fn build(settings: HttpSettings) -> Result<Client, ClientError> {
    Client::builder()
        .connect_timeout(settings.connect_deadline)
        .pool_max_idle_per_host(settings.idle_connections)
        .pool_idle_timeout(Duration::from_secs(60))
        .read_timeout(SILENCE_DEADLINE)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| ClientError::Unreachable { service: "http client", reason: error.to_string() })
}
