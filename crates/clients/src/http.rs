//! The HTTP client for calls between services: one per thread.
//!
//! An HTTP server has one runtime per thread, and a connection is driven by the runtime of the thread that opened it. With a
//! shared client, other threads would wait for that thread, wake it for each call, and lose the connection when it ends. With
//! a client per thread, a call stays on its thread. Nor can `hyper` lose a request whose connection ends while it is handed to
//! another thread (<https://github.com/hyperium/hyper/issues/4122>).

use std::sync::Arc;
use std::time::Duration;

use assay_platform::http_client::client_builder;
use reqwest::Client;
use thread_local::ThreadLocal;

use super::error::ClientError;
use super::metrics;

/// Longest pause within a response.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

const CONNECT_DEADLINE: Duration = Duration::from_millis(800);

/// Idle connections per service and thread.
const IDLE_CONNECTIONS: usize = 64;

/// The clients of all threads. They follow no redirects and use no proxy. Clones share them.
#[derive(Debug, Clone)]
pub struct HttpClient {
    threads: Arc<ThreadLocal<Client>>,
}

/// The HTTP client of a process.
///
/// # Errors
/// When the TLS settings of the system cannot be read.
pub fn http_client() -> Result<HttpClient, ClientError> {
    metrics::describe();
    let client = HttpClient { threads: Arc::default() };
    // So that an error shows here, not at the first call.
    client.for_current_thread()?;
    Ok(client)
}

impl HttpClient {
    pub(crate) fn for_current_thread(&self) -> Result<&Client, ClientError> {
        self.threads.get_or_try(build)
    }
}

fn build() -> Result<Client, ClientError> {
    client_builder()
        .connect_timeout(CONNECT_DEADLINE)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(Duration::from_secs(60))
        .read_timeout(READ_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .map_err(|error| ClientError::InvalidRequest { service: "http client", reason: error.to_string() })
}
