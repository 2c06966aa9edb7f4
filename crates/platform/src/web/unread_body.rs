//! The unread rest of a chunked body whose request is refused early, for its key, content type or size.
//!
//! actix would read the rest without a limit in size or time before it reuses the connection, so a client without a key
//! could hold a connection for ever. When the rest is still referenced after the response was written, actix closes the
//! connection instead, after a short delay in which the response can arrive.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::TRANSFER_ENCODING;
use actix_web::web::Bytes;
use futures_util::Stream;

/// A shared reference to a request body.
#[derive(Clone)]
pub(super) struct UnreadBody(Rc<RefCell<Payload>>);

impl UnreadBody {
    /// Takes a reference to the body of a request; `None` for a declared length, which actix handles itself.
    pub(super) fn hold(request: &mut ServiceRequest) -> Option<Self> {
        if !request.headers().contains_key(TRANSFER_ENCODING) {
            return None;
        }
        let held = Self(Rc::new(RefCell::new(request.take_payload())));
        request.set_payload(Payload::Stream { payload: Box::pin(held.clone()) });
        Some(held)
    }
}

impl Stream for UnreadBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}
