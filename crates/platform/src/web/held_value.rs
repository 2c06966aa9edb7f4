//! A response body that keeps a value alive until it is written, or its connection ends.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;

/// The body, and a value that is dropped with it: a permit, for instance.
pub fn hold_until_sent<T: Unpin + 'static>(body: BoxBody, value: T) -> BoxBody {
    BoxBody::new(HoldingBody { body, _value: value })
}

struct HoldingBody<T> {
    body: BoxBody,
    _value: T,
}

impl<T: Unpin> MessageBody for HoldingBody<T> {
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
