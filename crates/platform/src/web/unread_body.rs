//! What is left of a chunked body when its request is answered early: refused for its key, its type or its size.
//!
//! The server would read such a rest to its end before it decides about the connection, without a limit in size or time,
//! so that a client without a key could hold a connection for ever. A rest that is still held when the answer has been
//! written makes the server close the connection instead, after a short while in which the answer can arrive.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::TRANSFER_ENCODING;
use actix_web::web::Bytes;
use futures_util::Stream;

/// A request's body, held beside whoever reads it.
#[derive(Clone)]
pub(super) struct UnreadBody(Rc<RefCell<Payload>>);

/// The body of an answer that holds the rest of the request's body for as long as it is written.
struct Answer {
    body: BoxBody,
    _unread: UnreadBody,
}

impl UnreadBody {
    /// Holds the body of a request; `None` when its length is declared, which the server deals with itself.
    pub(super) fn hold(request: &mut ServiceRequest) -> Option<Self> {
        if !request.headers().contains_key(TRANSFER_ENCODING) {
            return None;
        }
        let held = Self(Rc::new(RefCell::new(request.take_payload())));
        request.set_payload(Payload::Stream { payload: Box::pin(held.clone()) });
        Some(held)
    }

    /// The answer's body, holding this one.
    pub(super) fn beside(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Answer { body, _unread: self })
    }
}

impl Stream for UnreadBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}

impl MessageBody for Answer {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
