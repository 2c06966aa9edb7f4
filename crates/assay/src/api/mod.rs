//! Client of the public API for the commands that talk to a running service. It retries while the service is busy or
//! unreachable; its errors say what to do.

mod problem;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use assay_platform::http_client::client_builder;
use assay_platform::settings::client_variable;
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use url::Url;

pub use self::problem::Problem;
use crate::cli::ServiceArguments;

const DEFAULT_URL: &str = "http://127.0.0.1:8080";

/// Upper limit of a server's `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
const REQUEST_DEADLINE: Duration = Duration::from_secs(60);
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
const USER_AGENT: &str = concat!("assay-cli/", env!("CARGO_PKG_VERSION"));

/// Maximum attempts of a request that a person waits for. The pauses take some seconds in total, unless the service asks
/// for longer ones.
pub const INTERACTIVE_ATTEMPTS: u16 = 6;

/// A client of one gateway, with one API key.
pub struct Api {
    http: Client,
    url: String,
    key: String,
    attempts: u16,
}

/// A request of the public API.
pub struct Call<'a> {
    pub method: Method,
    /// Relative to the gateway's address, with a leading slash.
    pub path: &'a str,
    /// JSON.
    pub body: Option<Vec<u8>>,
    pub idempotency_key: Option<&'a str>,
}

impl<'a> Call<'a> {
    pub fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: None, idempotency_key: None }
    }
}

impl Api {
    /// Address and key come from the command line, else from the environment.
    pub fn new(service: &ServiceArguments, attempts: u16) -> Result<Self> {
        let url = match (&service.url, client_variable("ASSAY_URL")) {
            (Some(url), _) => url.clone(),
            (None, Some(url)) => Url::parse(&url)
                .with_context(|| format!("ASSAY_URL is `{url}`: give an address like {DEFAULT_URL}"))?,
            (None, None) => Url::parse(DEFAULT_URL)?,
        };
        // `localhost:8080` is parsed as a URL with the scheme `localhost`.
        if !matches!(url.scheme(), "http" | "https") {
            bail!(
                "`{url}` is no address of a gateway: it begins with http:// or https://, as in {DEFAULT_URL}"
            );
        }
        let Some(key) = service.key.clone().or_else(|| client_variable("ASSAY_API_KEY")) else {
            bail!(
                "an API key is needed: set ASSAY_API_KEY or give --key; `assay keys create --organization NAME` makes one"
            );
        };
        let mut credentials = HeaderValue::from_str(&format!("Bearer {key}"))
            .context("the API key has characters that no key has: copy it again")?;
        credentials.set_sensitive(true);
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, credentials),
            (ACCEPT, HeaderValue::from_static("application/json")),
        ]);
        let http = client_builder()
            .default_headers(headers)
            .timeout(REQUEST_DEADLINE)
            .connect_timeout(CONNECT_DEADLINE)
            .user_agent(USER_AGENT)
            .build()?;
        Ok(Self { http, url: url.as_str().trim_end_matches('/').to_owned(), key, attempts })
    }

    /// Identifies the gateway and the key: their SHA-256, in lower-case hexadecimal.
    pub fn destination_hash(&self) -> String {
        hex::encode(Sha256::digest(format!("{}\n{}", self.url, self.key).as_bytes()))
    }

    /// Sends a request and retries temporary failures: after `Retry-After` where the service names one, else with
    /// exponential backoff. Returns the first other response, whatever its status. Anything but a `GET` needs an
    /// idempotency key, because the response to an earlier attempt may have been lost.
    pub async fn send(&self, call: &Call<'_>) -> Result<Response> {
        let mut delays = backoff(self.attempts);
        loop {
            let (failure, requested_delay) = match self.request(call).send().await {
                Ok(response) if is_temporary(response.status()) => {
                    (format!("the service answered {}", response.status()), retry_after(&response))
                }
                Ok(response) => return Ok(response),
                Err(error) => (self.unreachable(error), None),
            };
            let Some(delay) = delays.next() else {
                bail!("{failure} (attempts: {})", self.attempts);
            };
            tokio::time::sleep(requested_delay.unwrap_or(delay)).await;
        }
    }

    /// Sends a request and parses the body of a successful response; any other status is an error.
    pub async fn send_for_json<T: DeserializeOwned>(&self, call: &Call<'_>) -> Result<T> {
        let response = self.send(call).await?;
        if !response.status().is_success() {
            return Err(Problem::read(response).await.into_error());
        }
        let body = response.bytes().await.context("the connection broke before the end of the response")?;
        serde_json::from_slice(&body)
            .context("the answer cannot be read: do this command and the service have the same version?")
    }

    fn request(&self, call: &Call<'_>) -> RequestBuilder {
        let mut request = self.http.request(call.method.clone(), format!("{}{}", self.url, call.path));
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        match &call.body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.clone()),
            None => request,
        }
    }

    fn unreachable(&self, error: reqwest::Error) -> String {
        let advice = if error.is_connect() {
            ": is the service running? `make run` starts one; --url or ASSAY_URL says where another one is"
        } else {
            ""
        };
        format!("{} cannot be reached{advice}: {:#}", self.url, anyhow::Error::new(error.without_url()))
    }
}

/// A client that sends no API key, for signed URLs. It has a read timeout but no total timeout: a large file may take
/// long.
pub fn client_without_key() -> Result<Client> {
    let client = client_builder()
        .read_timeout(REQUEST_DEADLINE)
        .connect_timeout(CONNECT_DEADLINE)
        .user_agent(USER_AGENT)
        .build()?;
    Ok(client)
}

/// Delays between `attempts` attempts.
pub fn backoff(attempts: u16) -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_jitter()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(15))
        .with_max_times(usize::from(attempts).saturating_sub(1))
        .build()
}

/// Whether a retry of the same request may succeed.
pub fn is_temporary(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Delay in seconds (RFC 9110, section 10.2.3); this service does not use the date form.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}
