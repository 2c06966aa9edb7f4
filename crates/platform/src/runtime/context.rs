//! What follows a request through the code and across services: its id and its trace.
//!
//! Carried by the task, not by arguments: error answers, log lines and outgoing calls all need it, and none of
//! the code between them does.

use std::future::Future;

use uuid::Uuid;

tokio::task_local! {
    static CURRENT: RequestContext;
}

/// Longest request id that is taken over from a client.
const MAX_REQUEST_ID: usize = 128;

/// The identity of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestContext {
    /// `X-Request-Id`: the client's, when sane, else made here.
    pub request_id: String,
    /// W3C Trace Context header `traceparent`: as it came, or where traces are recorded, that of the span at work.
    pub traceparent: Option<String>,
}

impl RequestContext {
    /// From the headers of a request. An id is sane when it is 1 to 128 characters of visible ASCII.
    pub fn from_headers(request_id: Option<&str>, traceparent: Option<&str>) -> Self {
        let request_id = request_id
            .filter(|id| {
                !id.is_empty() && id.len() <= MAX_REQUEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
            })
            .map_or_else(|| Uuid::now_v7().to_string(), str::to_owned);
        Self { request_id, traceparent: traceparent.filter(|value| is_traceparent(value)).map(str::to_owned) }
    }

    /// The id of the trace it belongs to, if there is one: 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }

    /// The context of the current task, if it has one.
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
    fn a_sane_request_id_is_echoed_and_any_other_is_replaced() {
        let echoed = |id: &str| RequestContext::from_headers(Some(id), None).request_id == id;
        assert!(echoed("abc-123"));
        assert!(echoed(&"x".repeat(128)));
        for id in ["", "has space", "tab\t", "ümlaut", &"x".repeat(129)] {
            assert!(!echoed(id), "{id:?}");
        }
    }

    #[test]
    fn only_a_well_formed_traceparent_is_passed_on() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(RequestContext::from_headers(None, Some(good)).traceparent.as_deref(), Some(good));
        let context = RequestContext::from_headers(None, Some(good));
        assert_eq!(context.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(RequestContext::from_headers(None, Some("00-xyz-1-01")).traceparent, None);
    }
}
