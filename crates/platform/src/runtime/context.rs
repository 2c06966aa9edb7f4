//! Request context: request id and trace context, passed on across services.
//!
//! Stored in the task, not passed as an argument: error responses, log lines and outgoing calls need it, the code between
//! them does not.

use std::future::Future;

use uuid::Uuid;

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// Longest request id accepted from a client.
const MAX_REQUEST_ID: usize = 128;

/// Request id and trace context of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// `X-Request-Id`: the client's when valid, else generated.
    pub request_id: String,
    /// W3C Trace Context header `traceparent`: as received, or that of the current span where traces are recorded.
    pub traceparent: Option<String>,
}

impl RequestContext {
    /// From request headers. A valid id has 1 to 128 characters of visible ASCII.
    pub fn from_headers(request_id: Option<&str>, traceparent: Option<&str>) -> Self {
        let request_id = request_id
            .filter(|id| {
                !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
            })
            .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        Self { request_id, traceparent: traceparent.filter(|value| is_traceparent(value)).map(str::to_owned) }
    }

    /// Trace id, 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }

    /// The context of the current task.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs `work` with this context as the current one.
    pub async fn scope<F: Future>(self, work: F) -> F::Output {
        CURRENT.scope(self, work).await
    }
}

/// Version 00 of the header: `00-<32 hex>-<16 hex>-<2 hex>`, lower case.
fn is_traceparent(value: &str) -> bool {
    let parts: Vec<&str> = value.split('-').collect();
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    parts.len() == 4
        && parts.iter().map(|part| part.len()).eq([2, 32, 16, 2])
        && parts.iter().all(|part| is_hex(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_request_id_is_kept_and_invalid_one_is_replaced() {
        let is_kept = |id: &str| RequestContext::from_headers(Some(id), None).request_id == id;
        assert!(is_kept("abc-123"));
        assert!(is_kept(&"x".repeat(128)));
        for id in ["", "has space", "tab\t", "ümlaut", &"x".repeat(129)] {
            assert!(!is_kept(id), "{id:?}");
        }
    }

    #[test]
    fn malformed_traceparent_is_dropped() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(RequestContext::from_headers(None, Some(good)).traceparent.as_deref(), Some(good));
        let context = RequestContext::from_headers(None, Some(good));
        assert_eq!(context.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(RequestContext::from_headers(None, Some("00-xyz-1-01")).traceparent, None);
    }
}
