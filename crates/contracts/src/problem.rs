//! Problem objects (RFC 9457), the body of every error response. Each condition has a stable `code`, which determines its
//! status and title.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::ids::TicketId;
use crate::validation::FieldError;

macro_rules! problem_codes {
    ($($(#[$doc:meta])* $variant:ident = $status:tt, $code:tt, $title:tt;)*) => {
        /// The closed list of conditions that clients may match on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum ProblemCode {
            $($(#[$doc])* #[serde(rename = $code)] $variant,)*
        }

        impl ProblemCode {
            /// Every code, for documentation and tests.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// HTTP status code of the response.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// The stable name, kebab-case, also the last part of the `type` URI.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// Documentation page, `proto-docs/problems/<code>.md`: cause, remedy, example.
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../../proto-docs/problems/", $code, ".md")),)*
                }
            }

            /// Short summary, the same for every occurrence.
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }
        }
    };
}

problem_codes! {
    /// The body is not JSON.
    MalformedJson = 400, "malformed-json", "The request body is not valid JSON";
    /// Webhooks may not be sent to this address.
    WebhookAddressRefused = 400, "webhook-address-refused", "Webhooks cannot be sent to this address";
    /// The body, a query parameter or a header is invalid; `errors` has the locations.
    InvalidRequest = 400, "invalid-request", "The request is not valid";
    /// `id` and `external_id` of an AI author name different agents.
    AgentMismatch = 400, "agent-mismatch", "The agent's id and external_id do not belong together";
    /// The cursor was not issued by this service for this organization.
    InvalidCursor = 400, "invalid-cursor", "The cursor is not valid";
    /// No valid API key.
    Unauthorized = 401, "unauthorized", "A valid API key is required";
    /// The API key lacks the scope.
    Forbidden = 403, "missing-scope", "The API key may not do this";
    /// The download address was altered or has expired.
    InvalidSignature = 403, "invalid-signature", "The download address is not valid or has expired";
    /// No such route.
    RouteNotFound = 404, "route-not-found", "There is no such address";
    /// No such ticket in this organization.
    TicketNotFound = 404, "ticket-not-found", "There is no such ticket";
    /// The transcript was removed at the end of its retention period; its evaluation may be kept.
    TranscriptExpired = 404, "transcript-expired", "The transcript is no longer kept";
    /// An AI author names an agent that is not registered.
    UnknownAgent = 404, "unknown-agent", "The AI agent is not registered";
    /// No such export in this organization.
    ExportNotFound = 404, "export-not-found", "There is no such export";
    /// The export file was deleted after its retention period.
    ExportFileGone = 404, "export-file-gone", "The export's file is no longer kept";
    /// No such webhook in this organization.
    WebhookNotFound = 404, "webhook-not-found", "There is no such webhook";
    /// No such delivery of this webhook.
    WebhookDeliveryNotFound = 404, "webhook-delivery-not-found", "There is no such delivery";
    /// This installation sends no webhooks.
    WebhooksOff = 404, "webhooks-off", "Webhooks are turned off in this installation";
    /// The route exists, the method does not; see `Allow`.
    MethodNotAllowed = 405, "method-not-allowed", "The method is not allowed here";
    /// The client took too long to send its request.
    RequestTimeout = 408, "request-timeout", "The request took too long to arrive";
    /// The identity was imported before.
    DuplicateImport = 409, "duplicate-import", "This conversation was imported before";
    /// The agent's external_id is taken.
    DuplicateAgent = 409, "duplicate-agent", "An agent with this external_id exists";
    /// The export is still pending or running.
    ExportNotReady = 409, "export-not-ready", "The export is not complete yet";
    /// The export failed; its `error_message` says why.
    ExportFailed = 409, "export-failed", "The export failed";
    /// The organization has the maximum number of webhooks.
    WebhookLimitReached = 409, "webhook-limit-reached", "Your organization has as many webhooks as it may have";
    /// The webhook is disabled.
    WebhookDisabled = 409, "webhook-disabled", "The webhook is disabled";
    /// The payload of the delivery was erased with its ticket.
    WebhookPayloadErased = 409, "webhook-payload-erased", "The message was erased";
    /// The body is larger than the limit.
    PayloadTooLarge = 413, "payload-too-large", "The request body is too large";
    /// The address is longer than the limit.
    UriTooLong = 414, "uri-too-long", "The address is too long";
    /// The body is not declared as JSON.
    UnsupportedMediaType = 415, "unsupported-media-type", "The request body must be JSON";
    /// The byte range lies outside of the file.
    RangeNotSatisfiable = 416, "range-not-satisfiable", "The byte range lies outside of the file";
    /// The idempotency key was used with another body.
    IdempotencyConflict = 422, "idempotency-conflict", "The idempotency key was used with another request";
    /// The key's rate limit is used up.
    RateLimited = 429, "rate-limited", "Too many requests";
    /// The organization has the maximum number of unfinished exports.
    TooManyExports = 429, "too-many-exports", "Your organization has too many unfinished exports";
    /// The maximum number of concurrent downloads of the file is reached.
    TooManyDownloads = 429, "too-many-downloads", "Too many downloads at the same time";
    /// Headers are larger than the limit.
    HeadersTooLarge = 431, "headers-too-large", "The request headers are too large";
    /// An internal error; the cause is in the log under the request id.
    Internal = 500, "internal-error", "Internal server error";
    /// A bounded queue is full or a dependency is unavailable; retry later.
    Unavailable = 503, "unavailable", "The service is busy or partly unavailable";
}

impl ProblemCode {
    /// Example response from the documentation page.
    pub fn example(self) -> &'static str {
        let example = self.page().split("```").nth(1).unwrap_or_default();
        example.strip_prefix("json").unwrap_or_default().trim()
    }

    /// The problem's type URI: `urn:assay:problem:<code>`.
    pub fn type_uri(self) -> String {
        format!("urn:assay:problem:{}", self.as_str())
    }
}

/// An error response (`application/problem+json`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// HTTP status code of the response.
    #[schema(example = 400)]
    pub status: u16,
    /// Short summary of the kind of problem.
    pub title: String,
    /// Explanation of this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// URI of the kind of problem.
    #[serde(rename = "type")]
    #[schema(format = "uri", example = "urn:assay:problem:invalid-request", default = "about:blank")]
    pub type_uri: String,
    /// Stable name of the condition, kebab-case.
    #[schema(value_type = String, example = "invalid-request")]
    pub code: ProblemCode,
    /// Id of the request, as in the `X-Request-Id` header and the logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The validation errors of the request, at most twenty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// On `duplicate-import`: the ticket id of the first import.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub ticket_id: Option<TicketId>,
}

impl Problem {
    /// A problem with the status and title of `code`, and an explanation of this occurrence.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            status: code.status(),
            title: code.title().to_owned(),
            detail: Some(detail.into()),
            type_uri: code.type_uri(),
            code,
            request_id: None,
            errors: Vec::new(),
            ticket_id: None,
        }
    }

    /// Adds validation errors.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldError>) -> Self {
        self.errors = errors;
        self
    }
}
