//! A memory budget of large responses: a client that reads slowly keeps its response in memory until the response is sent or
//! makes no progress for too long.

use std::convert::Infallible;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::body::{BoxBody, MessageBody, SizedStream};
use actix_web::web::Bytes;
use futures_util::stream;
use tokio::sync::Semaphore;

use super::{SMALL_BODY, WebError, hold_until_sent};

/// A chunk is copied into the buffer of its connection, beside up to 32 KiB that wait there.
const CHUNK_BYTES: usize = 16 * 1024;

const KIB: usize = 1024;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct ResponseBudget {
    available_kib: Arc<Semaphore>,
}

impl ResponseBudget {
    /// A budget of `bytes` for the responses above [`SMALL_BODY`] that are being sent.
    pub fn new(bytes: usize) -> Self {
        Self { available_kib: Arc::new(Semaphore::new(bytes / KIB)) }
    }

    /// The response, which counts against the budget until it is sent, if it is large.
    ///
    /// # Errors
    /// 503 when the budget is exhausted.
    pub fn limit(&self, response: HttpResponse) -> Result<HttpResponse, WebError> {
        let (head, body) = response.into_parts();
        let bytes = match body.try_into_bytes() {
            Ok(bytes) => bytes,
            Err(body) => return Ok(head.set_body(body)),
        };
        if bytes.len() <= SMALL_BODY {
            return Ok(head.set_body(BoxBody::new(bytes)));
        }
        let kib = u32::try_from(bytes.len().div_ceil(KIB)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.available_kib).try_acquire_many_owned(kib);
        let permit = permit.map_err(|_| WebError::unavailable(&"too many large responses are being sent"))?;
        Ok(head.set_body(hold_until_sent(BoxBody::new(chunked_body(bytes)), permit)))
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
    use super::*;

    #[tokio::test]
    async fn large_responses_count_until_they_are_sent() {
        let budget = ResponseBudget::new(10 * SMALL_BODY);
        let limited = |bytes: usize| budget.limit(HttpResponse::Ok().body(vec![b'x'; bytes]));
        let first = limited(9 * SMALL_BODY).unwrap();
        let refused = limited(2 * SMALL_BODY).err().map(|error| error.to_string());
        assert!(refused.is_some(), "the budget is exhausted");
        assert!(limited(SMALL_BODY).is_ok(), "small responses do not count");
        let sent = actix_web::body::to_bytes(first.into_body()).await.unwrap();
        assert_eq!(sent.len(), 9 * SMALL_BODY);
        assert!(limited(10 * SMALL_BODY).is_ok(), "the first one is sent");
        assert!(limited(11 * SMALL_BODY).is_err());
    }
}
