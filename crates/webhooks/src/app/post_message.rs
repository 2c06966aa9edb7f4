//! Sends one message: the only place where this service calls an address that somebody else chose.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_contracts::time::Timestamp;
use assay_contracts::webhook::AttemptError;
use assay_platform::auth::SigningKeys;
use assay_platform::runtime::{now, within};
use chrono::DateTime;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response};

use crate::domain::address::AddressRules;
use crate::domain::attempt::{Attempt, Claim};
use crate::domain::secret::signatures;

/// An answer is read up to here, so that its connection can be used again; what it says is of no interest.
const ANSWER_BYTES: usize = 16 * 1024;

/// And for so long.
const ANSWER_DEADLINE: Duration = Duration::from_secs(2);

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// What messages are sent with.
pub(crate) struct Poster {
    http: Client,
    rules: Arc<AddressRules>,
    keys: SigningKeys,
    deadline: Duration,
}

impl Poster {
    /// # Errors
    /// When the system's TLS settings cannot be read.
    pub(crate) fn new(
        rules: Arc<AddressRules>,
        keys: SigningKeys,
        deadline: Duration,
    ) -> Result<Self, reqwest::Error> {
        let http = Client::builder()
            .dns_resolver(CheckedResolver { rules: rules.clone() })
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

    /// Makes one attempt, which ends within the deadline.
    pub(crate) async fn post(&self, claim: &Claim) -> Attempt {
        let (attempted_at, begun) = (now(), Instant::now());
        let sent = within(self.deadline, self.send(claim, attempted_at)).await;
        let duration_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        match sent.unwrap_or(Err(AttemptError::Timeout)) {
            Ok(response) => {
                let mut attempt = Attempt::answered(attempted_at, duration_ms, response.status().as_u16());
                attempt.retry_after_seconds = retry_after(response.headers(), attempted_at);
                within(ANSWER_DEADLINE, read_some(response)).await;
                attempt
            }
            Err(error) => Attempt::failed(attempted_at, duration_ms, Some(error)),
        }
    }

    async fn send(&self, claim: &Claim, at: Timestamp) -> Result<Response, AttemptError> {
        // Again: the rules may have changed, and the resolver is not asked for an address that is a number.
        let url = self.rules.check_url(&claim.url).map_err(|_| AttemptError::AddressRefused)?;
        let secrets = claim.secrets.signing(&self.keys, claim.endpoint_id, at).map_err(|error| {
            tracing::error!(webhook = %claim.endpoint_id, cause = %error, "message cannot be signed");
            AttemptError::SecretUnreadable
        })?;
        let seconds = at.as_millis() / 1_000;
        let request = self
            .http
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", claim.id.to_string())
            .header("webhook-timestamp", seconds.to_string())
            .header("webhook-signature", signatures(&secrets, claim.id, seconds, &claim.payload))
            .body(claim.payload.clone());
        request.send().await.map_err(|error| {
            if is_of_refused_name(&error) {
                tracing::info!(webhook = %claim.endpoint_id, "webhook not called: its name leads to no address that may be");
            }
            kind_of(&error)
        })
    }
}

/// Resolves names to addresses that may be called, and to no others. What it answers is what is connected to: nobody looks the
/// name up a second time, and gets another answer.
struct CheckedResolver {
    rules: Arc<AddressRules>,
}

/// A name that leads to no address that may be called.
#[derive(Debug, thiserror::Error)]
#[error("the name leads to no address on the public internet")]
struct RefusedName;

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.rules.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|address| rules.allows(address.ip())).collect();
            if allowed.is_empty() {
                return Err(RefusedName.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// What the owner of an endpoint is told. A name that leads only into a private network has no address, as for everybody
/// outside: a word of its own would tell which names exist inside. Only our log knows better.
fn kind_of(error: &reqwest::Error) -> AttemptError {
    if error.is_timeout() {
        AttemptError::Timeout
    } else if error.is_dns() || is_of_refused_name(error) {
        AttemptError::NameNotResolved
    } else {
        AttemptError::ConnectionFailed
    }
}

fn is_of_refused_name(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<RefusedName>() {
            return true;
        }
        source = cause.source();
    }
    false
}

async fn read_some(mut response: Response) {
    let mut read = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        read += chunk.len();
        if read >= ANSWER_BYTES {
            return;
        }
    }
}

/// Seconds, or the seconds until a date (RFC 9110, section 10.2.3).
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
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_into_a_private_network_has_no_address() {
        let resolve = async |networks: &str| {
            let rules = Arc::new(AddressRules::new(false, networks).unwrap());
            CheckedResolver { rules }.resolve("localhost".parse().unwrap()).await
        };
        let Err(error) = resolve("").await else { unreachable!("localhost was resolved") };
        assert!(error.is::<RefusedName>(), "{error}");
        let found: Vec<SocketAddr> = resolve("127.0.0.0/8").await.unwrap().collect();
        assert!(!found.is_empty() && found.iter().all(|address| address.is_ipv4()), "{found:?}");
    }

    #[tokio::test]
    async fn a_name_inside_is_told_from_one_that_does_not_exist_by_us_alone() {
        let rules = Arc::new(AddressRules::new(false, "").unwrap());
        let http = Client::builder().no_proxy().dns_resolver(CheckedResolver { rules }).build().unwrap();
        let failure = async |url: &str| http.post(url).send().await.unwrap_err();
        let inside = failure("http://localhost:9/").await;
        let nowhere = failure("http://nobody.invalid:9/").await;
        assert!(is_of_refused_name(&inside) && !is_of_refused_name(&nowhere), "{inside:?} {nowhere:?}");
        assert_eq!(kind_of(&inside), AttemptError::NameNotResolved);
        assert_eq!(kind_of(&nowhere), AttemptError::NameNotResolved);
    }

    #[test]
    fn a_receiver_may_ask_for_patience_in_seconds_or_until_a_date() {
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
