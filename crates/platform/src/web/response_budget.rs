//! A memory budget of large responses: a client that reads slowly keeps its response in memory until the response is sent, or
//! ends because it is read too slowly.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::body::{BoxBody, MessageBody, SizedStream};
use actix_web::web::Bytes;
use assay_contracts::ids::OrganizationId;
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::shares::Shares;
use super::{SMALL_BODY, WebError, hold_until_sent};

/// A chunk is copied into the buffer of its connection, beside up to 32 KiB that wait there.
const CHUNK_BYTES: usize = 16 * 1024;

const KIB: usize = 1024;

/// Responses that may be built at once. Until its size is known, a response takes several times as much: what was read from the
/// database, and its JSON.
const BUILT_AT_ONCE: usize = 8;

/// How long a response waits until others are built.
const BUILD_WAIT: Duration = Duration::from_secs(5);

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct ResponseBudget {
    available_kib: Arc<Semaphore>,
    /// In bytes.
    shares: Shares,
    build_permits: Arc<Semaphore>,
}

impl ResponseBudget {
    /// A budget of `bytes` for the responses above [`SMALL_BODY`] that are being sent. Those to one organization have at most half
    /// of it together.
    pub fn new(bytes: usize) -> Self {
        Self {
            available_kib: Arc::new(Semaphore::new(bytes / KIB)),
            shares: Shares::half_of(bytes),
            build_permits: Arc::new(Semaphore::new(BUILT_AT_ONCE)),
        }
    }

    /// The permit to read and serialize what may become a large response: to be held until [`Self::limit`] has counted it.
    ///
    /// # Errors
    /// 503 when too many are being built for too long.
    pub async fn build_permit(&self) -> Result<OwnedSemaphorePermit, WebError> {
        match timeout(BUILD_WAIT, Arc::clone(&self.build_permits).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(WebError::unavailable(&"too many responses are being built")),
        }
    }

    /// The response to an organization, which counts against the budget until it is sent, if it is large.
    ///
    /// # Errors
    /// 503 when the budget or the share of the organization is exhausted.
    pub fn limit(
        &self,
        organization: OrganizationId,
        response: HttpResponse,
    ) -> Result<HttpResponse, WebError> {
        let (head, body) = response.into_parts();
        let bytes = match body.try_into_bytes() {
            Ok(bytes) => bytes,
            Err(body) => return Ok(head.set_body(body)),
        };
        if bytes.len() <= SMALL_BODY {
            return Ok(head.set_body(BoxBody::new(bytes)));
        }
        let mut share = self.shares.of(Some(organization));
        if !share.add(bytes.len()) {
            return Err(WebError::unavailable(
                &"too many large responses to the organization are being sent",
            ));
        }
        let kib = u32::try_from(bytes.len().div_ceil(KIB)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.available_kib).try_acquire_many_owned(kib);
        let permit = permit.map_err(|_| WebError::unavailable(&"too many large responses are being sent"))?;
        Ok(head.set_body(hold_until_sent(BoxBody::new(chunked_body(bytes)), (permit, share))))
    }
}

/// A body of shared memory with a known length, sent in chunks.
pub fn chunked_body(bytes: Bytes) -> impl MessageBody {
    let length = bytes.len() as u64;
    let chunks = stream::unfold(bytes, |mut rest| async move {
        let chunk = rest.split_to(rest.len().min(CHUNK_BYTES));
        (!chunk.is_empty()).then_some((Ok::<_, Infallible>(chunk), rest))
    });
    SizedStream::new(length, Box::pin(chunks))
}

#[cfg(test)]
mod tests {
    use actix_web::rt::System;

    use super::*;
    use crate::runtime::new_id;

    #[tokio::test(start_paused = true)]
    async fn responses_are_built_few_at_once() {
        let budget = ResponseBudget::new(SMALL_BODY);
        let mut permits = Vec::new();
        for _ in 0..BUILT_AT_ONCE {
            permits.push(budget.build_permit().await.unwrap());
        }
        assert_eq!(budget.build_permit().await.unwrap_err().problem().status, 503);
        permits.pop();
        assert!(budget.build_permit().await.is_ok());
    }

    #[test]
    fn responses_to_one_organization_have_half_of_the_budget() {
        System::new().block_on(async {
            let budget = ResponseBudget::new(10 * SMALL_BODY);
            let (greedy, other) = (new_id(), new_id());
            let limited =
                |organization| budget.limit(organization, HttpResponse::Ok().body(vec![0; 2 * SMALL_BODY]));
            let held = [limited(greedy).unwrap(), limited(greedy).unwrap()];
            assert_eq!(limited(greedy).unwrap_err().problem().status, 503);
            assert!(limited(other).is_ok());
            drop(held);
            assert!(limited(greedy).is_ok());
        });
    }

    #[test]
    fn large_responses_count_until_they_are_sent() {
        System::new().block_on(async {
            let budget = ResponseBudget::new(10 * SMALL_BODY);
            let organization = new_id();
            let limited =
                |bytes: usize| budget.limit(organization, HttpResponse::Ok().body(vec![b'x'; bytes]));
            let first = limited(9 * SMALL_BODY).unwrap();
            let refused = limited(2 * SMALL_BODY).err().map(|error| error.to_string());
            assert!(refused.is_some(), "the budget is exhausted");
            assert!(limited(SMALL_BODY).is_ok(), "small responses do not count");
            let sent = actix_web::body::to_bytes(first.into_body()).await.unwrap();
            assert_eq!(sent.len(), 9 * SMALL_BODY);
            assert!(limited(10 * SMALL_BODY).is_ok(), "the first one is sent");
            assert!(limited(11 * SMALL_BODY).is_err());
        });
    }
}
