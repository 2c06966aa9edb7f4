//! Maps errors to problems.

use actix_web::http::header::RETRY_AFTER;
use assay_contracts::json::JsonFault;
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::validation::FieldError;
use assay_platform::db::idempotency;
use assay_platform::web::WebError;

use crate::app::RequestError;

impl From<RequestError> for WebError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::NotFound => not_found(),
            RequestError::DeliveryNotFound => delivery_not_found(),
            RequestError::Erased => Self::new(
                ProblemCode::WebhookPayloadErased,
                "the ticket was deleted, and the content of the message with it: it cannot be sent again",
            ),
            RequestError::Disabled => Self::new(
                ProblemCode::WebhookDisabled,
                "enable it first: send `{\"enabled\": true}` with PATCH",
            ),
            RequestError::Address(reason) => {
                let error = FieldError { pointer: "/url".to_owned(), detail: reason.to_string() };
                Problem::new(ProblemCode::WebhookAddressRefused, format!("/url {reason}"))
                    .with_errors(vec![error])
                    .into()
            }
            RequestError::TooManyRequested { per_minute, wait } => Self::new(
                ProblemCode::RateLimited,
                format!("your organization may request {per_minute} test messages and replays a minute"),
            )
            .with_header(RETRY_AFTER, &(wait.as_secs() + 1).to_string()),
            RequestError::LimitReached(limit) => Self::new(
                ProblemCode::WebhookLimitReached,
                format!("the limit is {limit}: delete one that is no longer needed"),
            ),
            RequestError::IdempotencyConflict => idempotency::conflict().into(),
            RequestError::Cursor(_) => Self::new(
                ProblemCode::InvalidCursor,
                "use `page_info.next_cursor` of an earlier page as it is, or leave the cursor out",
            ),
            RequestError::Secret(cause) => Self::internal(&cause),
            RequestError::Randomness(cause) => Self::internal(&cause),
            RequestError::Json(cause) => Self::internal(&JsonFault::of(&cause)),
            RequestError::Database(cause) => cause.into(),
        }
    }
}

/// Also for an id in the path that cannot be parsed.
pub(super) fn not_found() -> WebError {
    WebError::new(ProblemCode::WebhookNotFound, "your organization has no webhook with this id")
}

/// Also for an id in the path that cannot be parsed.
pub(super) fn delivery_not_found() -> WebError {
    WebError::new(
        ProblemCode::WebhookDeliveryNotFound,
        "the webhook has no delivery with this id, or it is no longer kept",
    )
}
