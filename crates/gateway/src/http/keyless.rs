//! Responses to requests without a key: few at once, and little memory for a client that does not read its response.

use std::sync::Arc;

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;
use assay_platform::web::{WebError, hold_until_sent};

use super::authentication::gateway;

/// Bounds the number of requests without a key in flight, until their responses are sent; beyond it the answer is 503.
pub(crate) async fn limit_keyless(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let slots = Arc::clone(&gateway(request.request())?.keyless_in_flight);
    let slot = slots
        .try_acquire_owned()
        .map_err(|_| WebError::unavailable(&"too many requests without a key in flight"))?;
    let response = next.call(request).await?;
    Ok(response.map_body(|_, body| hold_until_sent(body.boxed(), slot)))
}
