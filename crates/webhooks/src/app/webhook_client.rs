//! The HTTP client for webhooks: the only code that calls an address chosen by a user.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::AttemptError;
use assay_platform::auth::KeyRing;
use assay_platform::http_client::client_builder;
use assay_platform::runtime::{now, timeout};
use chrono::DateTime;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response};

use super::look_ups::LookUps;
use crate::domain::address::AddressRules;
use crate::domain::attempt::{Attempt, ClaimedMessage};
use crate::domain::secret::signatures;

/// Responses are drained up to this size, so that the connection can be reused; the content is ignored.
const MAX_DRAINED_BYTES: usize = 16 * 1024;

const DRAIN_DEADLINE: Duration = Duration::from_secs(2);

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

tokio::task_local! {
    /// The organization whose message is sent: [`Resolve`] gets only the host name.
    static CURRENT_ORGANIZATION: OrganizationId;
}

pub(crate) struct WebhookClient {
    http: Client,
    rules: Arc<AddressRules>,
    keys: KeyRing,
    deadline: Duration,
}

impl WebhookClient {
    /// # Errors
    /// When the system's TLS settings cannot be read.
    pub(crate) fn new(
        rules: Arc<AddressRules>,
        keys: KeyRing,
        deadline: Duration,
    ) -> Result<Self, reqwest::Error> {
        let http = client_builder()
            .dns_resolver(CheckedResolver::new(rules.clone()))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .connect_timeout(CONNECT_DEADLINE.min(deadline))
            .pool_max_idle_per_host(2)
            .pool_idle_timeout(Duration::from_secs(30))
            .user_agent(concat!("Assay-Webhooks/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { http, rules, keys, deadline })
    }

    /// Makes one attempt. It waits for the response until the deadline, and then at most [`DRAIN_DEADLINE`] for the body.
    pub(crate) async fn post(&self, message: &ClaimedMessage) -> Attempt {
        let (attempted_at, started) = (now(), Instant::now());
        let request = CURRENT_ORGANIZATION.scope(message.organization_id, self.send(message, attempted_at));
        let sent = timeout(self.deadline, request).await;
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        match sent.unwrap_or(Err(AttemptError::Timeout)) {
            Ok(response) => {
                let mut attempt = Attempt::answered(attempted_at, duration_ms, response.status().as_u16());
                attempt.retry_after_seconds = retry_after(response.headers(), attempted_at);
                timeout(DRAIN_DEADLINE, drain_body(response)).await;
                attempt
            }
            Err(error) => Attempt::failed(attempted_at, duration_ms, error),
        }
    }

    async fn send(&self, message: &ClaimedMessage, at: Timestamp) -> Result<Response, AttemptError> {
        // Checked again: the rules may have changed, and IP addresses in the URL bypass the resolver.
        let url = self.rules.check_url(&message.url).map_err(|_| AttemptError::AddressRefused)?;
        let secrets = message.secrets.active_at(&self.keys, message.endpoint_id, at).map_err(|error| {
            tracing::error!(webhook = %message.endpoint_id, cause = %error, "message cannot be signed");
            AttemptError::SecretUnreadable
        })?;
        let seconds = at.as_millis() / 1_000;
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", message.id.to_string())
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", signatures(&secrets, message.id, seconds, &message.payload))
            .body(message.payload.clone());
        request.send().await.map_err(|error| {
            if has_refused_name(&error) {
                tracing::info!(webhook = %message.endpoint_id, "webhook not called: its host name resolves to no allowed address");
            }
            classify(&error)
        })
    }
}

/// Resolves host names to allowed addresses only. The client connects to exactly these addresses: there is no second look-up
/// with another result (DNS rebinding).
struct CheckedResolver {
    rules: Arc<AddressRules>,
    look_ups: Arc<LookUps>,
}

impl CheckedResolver {
    fn new(rules: Arc<AddressRules>) -> Self {
        let look_ups = Arc::new(LookUps::new(rules.has_private_networks()));
        Self { rules, look_ups }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the name resolves to no allowed address")]
struct RefusedName;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, look_ups) = (self.rules.clone(), self.look_ups.clone());
        // reqwest calls `resolve` in the task that sends the request.
        let organization = CURRENT_ORGANIZATION.try_with(|organization| *organization);
        Box::pin(async move {
            let mut found = look_ups.find(organization?, name.as_str()).await?;
            found.retain(|address| rules.allows(address.ip()));
            if found.is_empty() {
                return Err(RefusedName.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// The error shown to the owner of an endpoint. A name that resolves only to private addresses is reported as not resolved: a
/// distinct error would reveal which internal names exist. Only the log distinguishes the two.
fn classify(error: &reqwest::Error) -> AttemptError {
    if error.is_timeout() {
        AttemptError::Timeout
    } else if error.is_dns() || has_refused_name(error) {
        AttemptError::NameNotResolved
    } else {
        AttemptError::ConnectionFailed
    }
}

fn has_refused_name(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<RefusedName>() {
            return true;
        }
        source = cause.source();
    }
    false
}

async fn drain_body(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read >= MAX_DRAINED_BYTES {
            return;
        }
    }
}

/// `Retry-After` in seconds (RFC 9110, section 10.2.3); a date becomes the first whole number of seconds beyond it.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<i64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(seconds.into());
    }
    let date = DateTime::parse_from_rfc2822(text).ok()?;
    Some((date.timestamp_millis() - now.as_millis()).div_euclid(1_000) + 1)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use assay_platform::runtime::new_id;

    use super::*;

    #[tokio::test]
    async fn resolver_refuses_names_of_private_networks() {
        let resolve = async |networks: &str| {
            let rules = Arc::new(AddressRules::new(false, networks).unwrap());
            let resolver = CheckedResolver::new(rules);
            let resolved = async { resolver.resolve("localhost".parse().unwrap()).await };
            CURRENT_ORGANIZATION.scope(new_id(), resolved).await
        };
        let Err(error) = resolve("").await else { unreachable!("localhost was resolved") };
        assert!(error.is::<RefusedName>(), "{error}");
        let found: Vec<SocketAddr> = resolve("127.0.0.0/8").await.unwrap().collect();
        assert!(!found.is_empty() && found.iter().all(|address| address.is_ipv4()), "{found:?}");
    }

    #[tokio::test]
    async fn internal_names_are_reported_like_missing_names() {
        let rules = Arc::new(AddressRules::new(false, "").unwrap());
        let http = client_builder().no_proxy().dns_resolver(CheckedResolver::new(rules)).build().unwrap();
        let failure =
            async |url: &str| CURRENT_ORGANIZATION.scope(new_id(), http.post(url).send()).await.unwrap_err();
        let internal = failure("http://localhost:9/").await;
        let missing = failure("http://missing.invalid:9/").await;
        assert!(has_refused_name(&internal) && !has_refused_name(&missing), "{internal:?} {missing:?}");
        assert_eq!(classify(&internal), AttemptError::NameNotResolved);
        assert_eq!(classify(&missing), AttemptError::NameNotResolved);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_date() {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = Timestamp::saturating_from_millis(784_111_777_000);
        let after = |text: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            retry_after(&headers, now)
        };
        assert_eq!(after("120"), Some(120));
        assert_eq!(after("Sun, 06 Nov 1994 08:51:37 GMT"), Some(121));
        assert_eq!((after("soon"), after("-5")), (None, None));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
