//! Parts of the operations' descriptions in the OpenAPI document: problem responses, and headers of requests.

use std::collections::BTreeMap;

use utoipa::openapi::response::Response;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoParams, IntoResponses};

type Responses = BTreeMap<String, RefOr<Response>>;

/// Declares sets of problem responses, for `responses(…)` of several operations.
macro_rules! problem_responses {
    ($($(#[$doc:meta])+ $name:ident $(with $base:ident)?: $(($status:literal, $description:literal)),+;)+) => {$(
        $(#[$doc])+
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> Responses {
                let problems = [$(($status.to_string(), problem($description))),+];
                problems.into_iter()$(.chain($base::responses()))?.collect()
            }
        }
    )+};
}

problem_responses! {
    /// Problems that every operation can answer, with or without credentials.
    PublicProblems:
        (405, "Method not allowed"),
        (414, "The address is too long"),
        (429, "Too many requests"),
        (431, "The headers are too large"),
        (500, "Internal server error"),
        (503, "Busy or partly unavailable; see `Retry-After`");
    /// Problems that every operation with credentials can answer.
    CommonProblems with PublicProblems:
        (401, "Unauthorized"),
        (403, "The API key lacks the scope"),
        (408, "The request took too long to arrive");
    /// Problems of an import's body.
    ImportBodyProblems:
        (413, "Request entity too large: more than 4 MiB, unless the operator has set another limit"),
        (415, "The body is not declared as JSON");
    /// Problems of every other operation with a body.
    BodyProblems:
        (413, "Request entity too large: more than 64 KiB"),
        (415, "The body is not declared as JSON");
    /// Invalid body or query.
    BadRequest: (400, "Bad request");
    /// [`BadRequest`] of the operations that take an address.
    WebhookAddressRefused: (400, "Bad request, or an address that messages are not sent to");
    /// An `Idempotency-Key` that was used before, for another body.
    IdempotencyConflict: (422, "The idempotency key was used with another body");
    /// An id in the path that the organization does not have.
    NotFound: (404, "Resource not found");
    /// [`CommonProblems`] of the operations on one webhook.
    WebhookProblems with CommonProblems: (404, "Resource not found, or webhooks are turned off");
    /// The 404 of the operations on all webhooks.
    WebhooksOff: (404, "Webhooks are turned off in this installation");
}

fn problem(description: &str) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new()
        .description(description)
        .content("application/problem+json", content)
        .build()
        .into()
}

/// The header `Idempotency-Key` of the creating operations.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "documentation only")]
pub(crate) struct IdempotencyHeader {
    /// Repeating a request with the same key and body within 24 hours gives the first answer again.
    #[param(
        rename = "Idempotency-Key",
        min_length = 1,
        max_length = 255,
        pattern = "^[!-~]+$",
        required = false
    )]
    idempotency_key: Option<String>,
}

/// The header `If-None-Match` of the operations that answer with an `ETag`.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[allow(dead_code, reason = "documentation only")]
pub(crate) struct IfNoneMatchHeader {
    /// The `ETag` of an earlier response, or several: the answer is 304, without a body, while one of them still holds.
    #[param(rename = "If-None-Match", nullable = false, example = "\"6c1f4d0b9a2e47538d61f0c7b5a9e234\"")]
    if_none_match: Option<String>,
}
