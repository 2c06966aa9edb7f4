//! Reads the bodies of requests with a key.

use std::time::Duration;

use actix_web::web::Payload;
use assay_contracts::validation::BodyError;
use assay_platform::web::{BodyLimits, BufferedBody, SMALL_BODY, WebError, parse_body, read_buffered_body};

use super::context::{share_exhausted, too_many_in_flight};
use super::keyed_request::KeyedRequest;

/// [`read_validated`] for the body of an operation other than an import: at most [`SMALL_BODY`] bytes.
pub(crate) async fn read_small<T>(
    request: &KeyedRequest,
    payload: Payload,
    parse: fn(&[u8]) -> Result<T, BodyError>,
) -> Result<BufferedBody, WebError>
where
    T: Send + 'static,
{
    let max_bytes = request.gateway.config.max_body_bytes.min(SMALL_BODY);
    read_validated(request, payload, max_bytes, parse).await
}

/// Reads a body, validates it with `parse`, so that invalid bodies never reach a service, and occupies a slot. The parsed
/// value is discarded: the owning service parses the original bytes again.
///
/// The slot is occupied only after the body has arrived, because a slow upload must not occupy it; without a free slot,
/// or beyond the share of the organization, the body is not read at all.
pub(crate) async fn read_validated<T>(
    request: &KeyedRequest,
    payload: Payload,
    max_bytes: usize,
    parse: fn(&[u8]) -> Result<T, BodyError>,
) -> Result<BufferedBody, WebError>
where
    T: Send + 'static,
{
    let gateway = &request.gateway;
    if !gateway.in_flight.has_free() {
        return Err(too_many_in_flight());
    }
    let deadline = Duration::from_secs(gateway.config.body_deadline_seconds);
    let limits = BodyLimits { max_bytes, deadline };
    let organization_id = request.caller.organization_id;
    gateway.in_flight.check_share(organization_id).map_err(share_exhausted)?;
    let budget = gateway.body_budget.of_organization(organization_id);
    let body = read_buffered_body(&request.http, payload, limits, &budget).await?;
    parse_body(&body, parse).await?;
    request.occupy_slot()?;
    Ok(body)
}
