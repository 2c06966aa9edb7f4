//! A request with a key, as its handler gets it.

use std::future::{Ready, ready};

use actix_web::body::to_bytes;
use actix_web::dev::Payload;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse};
use assay_clients::ServiceClient;
use assay_contracts::json::JsonFault;
use assay_platform::web::WebError;
use reqwest::Method;
use serde::de::DeserializeOwned;

use super::authentication::{AuthenticatedCaller, gateway};
use super::context::{Gateway, copy_headers};
use crate::app::{ServiceCall, forward};

/// The request, its caller, and the state of the gateway.
pub(crate) struct KeyedRequest {
    pub(super) http: HttpRequest,
    pub(super) gateway: Data<Gateway>,
    pub(super) caller: AuthenticatedCaller,
}

impl KeyedRequest {
    /// See [`AuthenticatedCaller::occupy_slot`]. Not done by the extractor: a handler with a body occupies the slot later.
    pub(super) fn occupy_slot(&self) -> Result<(), WebError> {
        self.caller.occupy_slot(&self.gateway)
    }

    /// A GET request to a service, with these headers of the request.
    pub(super) fn get<'a>(
        &'a self,
        service: &'a ServiceClient,
        path: &'a str,
        headers: &[&'static str],
    ) -> ServiceCall<'a> {
        let headers = copy_headers(&self.http, headers);
        ServiceCall { service, claims: &self.caller.claims, method: Method::GET, path, headers, body: None }
    }

    /// Passes a body on to a service, with the `Idempotency-Key` of the request.
    pub(super) async fn post(
        &self,
        service: &ServiceClient,
        path: &str,
        body: bytes::Bytes,
    ) -> Result<HttpResponse, WebError> {
        let get = self.get(service, path, &["idempotency-key"]);
        forward(ServiceCall { method: Method::POST, body: Some(body), ..get }).await
    }
}

/// Reads a JSON answer of a service, for handlers that do not relay it unchanged.
pub(super) async fn read_answer<T: DeserializeOwned>(answer: HttpResponse) -> Result<T, WebError> {
    let body = to_bytes(answer.into_body()).await.map_err(|error| WebError::unavailable(&error))?;
    serde_json::from_slice(&body).map_err(|error| WebError::internal(&JsonFault::of(&error)))
}

impl FromRequest for KeyedRequest {
    type Error = WebError;
    type Future = Ready<Result<Self, WebError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let caller = request.extensions().get::<AuthenticatedCaller>().cloned();
        let caller = caller.ok_or_else(|| WebError::internal(&"route without authentication"));
        let extracted = caller.and_then(|caller| {
            let gateway = gateway(request)?;
            Ok(Self { http: request.clone(), gateway, caller })
        });
        ready(extracted)
    }
}
