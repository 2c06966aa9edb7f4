//! Webhooks: endpoints of the caller that receive events, and the log of their deliveries. Messages follow Standard Webhooks
//! 1.0; their content is documented in `proto-docs/webhooks.md`.

mod body;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::body::{
    DEFAULT_LOW_SCORE, MAX_URL_BYTES, NewWebhook, NewWebhookRequest, WebhookChange, WebhookChangeRequest,
};
use crate::evaluation::Score;
use crate::ids::{WebhookDeliveryId, WebhookId};
use crate::named_enum::named_enum;
use crate::time::Timestamp;

named_enum!(
    /// Event types of webhooks.
    WebhookEvent {
        /// A conversation was evaluated.
        EvaluationCompleted = "evaluation.completed",
        /// A conversation cannot be evaluated.
        EvaluationFailed = "evaluation.failed",
        /// The transcript contradicts a vendor's charge.
        ResolutionDisputed = "resolution.disputed",
        /// The AXIS score is below the endpoint's threshold.
        AxisLowScore = "axis.low_score",
        /// The file of an export can be downloaded.
        ExportCompleted = "export.completed",
        /// An export failed.
        ExportFailed = "export.failed",
        /// A test message on request; not subscribable.
        Test = "webhook.test",
    }
);

impl WebhookEvent {
    /// Event types that an endpoint can subscribe to.
    pub const SUBSCRIBABLE: [Self; 6] = [
        Self::EvaluationCompleted,
        Self::EvaluationFailed,
        Self::ResolutionDisputed,
        Self::AxisLowScore,
        Self::ExportCompleted,
        Self::ExportFailed,
    ];

    /// Whether it is an event of an evaluation.
    pub const fn is_evaluation_event(self) -> bool {
        matches!(
            self,
            Self::EvaluationCompleted
                | Self::EvaluationFailed
                | Self::ResolutionDisputed
                | Self::AxisLowScore
        )
    }
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    /// Webhook id.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: WebhookId,
    /// Where messages are posted.
    #[schema(format = "uri", example = "https://hooks.example.com/assay")]
    pub url: String,
    /// Description given by the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// Subscribed event types.
    #[schema(min_items = 1)]
    pub events: BTreeSet<WebhookEvent>,
    /// `axis.low_score` is sent for scores below this threshold.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0, example = 3.0)]
    pub axis_low_score_below: Score,
    /// Whether messages are sent to it.
    pub enabled: bool,
    /// Why the service disabled it; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub disabled_reason: Option<DisabledReason>,
    /// When its attempts began to fail, epoch milliseconds; absent when the last one did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, example = 1_763_600_000_000_i64)]
    pub failing_since: Option<Timestamp>,
    /// Epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub created_at: Timestamp,
    /// When it was last changed, epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub updated_at: Timestamp,
}

/// A new endpoint with its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CreatedWebhook {
    /// The endpoint.
    #[serde(flatten)]
    pub webhook: Webhook,
    /// Signing secret of its messages: `whsec_` and base64.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    pub secret: String,
}

/// Signing secret of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookSecret {
    /// The secret: `whsec_` and base64.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    pub secret: String,
    /// Until when messages are also signed with the previous secret, epoch milliseconds; absent when they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, example = 1_763_600_000_000_i64)]
    pub previous_secret_expires_at: Option<Timestamp>,
}

named_enum!(
    /// Why the service disabled an endpoint.
    DisabledReason {
        /// It answered 410.
        Gone = "gone",
        /// All attempts failed for days.
        Failing = "failing",
    }
);

named_enum!(
    /// State of a delivery.
    DeliveryStatus {
        /// Another attempt is scheduled.
        Pending = "pending",
        /// The endpoint accepted it.
        Delivered = "delivered",
        /// All attempts failed, or the endpoint answered 410.
        Failed = "failed",
    }
);

/// One message to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDelivery {
    /// Delivery id: the header `webhook-id` of every attempt.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: WebhookDeliveryId,
    /// Event type.
    #[serde(rename = "type")]
    pub event: WebhookEvent,
    /// State of the delivery.
    pub status: DeliveryStatus,
    /// Attempts so far.
    pub attempts: u32,
    /// When the next attempt is due, epoch milliseconds; absent when none is scheduled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, example = 1_763_600_000_000_i64)]
    pub next_attempt_at: Option<Timestamp>,
    /// Epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub created_at: Timestamp,
}

/// One message to one endpoint, with its payload and attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDeliveryDetails {
    /// The message.
    #[serde(flatten)]
    pub delivery: WebhookDelivery,
    /// The payload; absent after its ticket was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub payload: Option<serde_json::Value>,
    /// The latest attempts, oldest first.
    pub attempt_log: Vec<WebhookAttempt>,
}

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookAttempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Start of the attempt, epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub attempted_at: Timestamp,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// HTTP status code of the endpoint's response; absent without a response.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 503)]
    pub status_code: Option<u16>,
    /// Cause of the failure; absent on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<AttemptError>,
}

named_enum!(
    /// Why an attempt failed.
    AttemptError {
        /// The response status was not 2xx.
        Status = "status",
        /// No response in time.
        Timeout = "timeout",
        /// The host name does not resolve to an allowed address.
        NameNotResolved = "name_not_resolved",
        /// Webhooks may not be sent to this URL, whatever its host name resolves to.
        AddressRefused = "address_refused",
        /// The connection failed or broke, or the certificate is invalid.
        ConnectionFailed = "connection_failed",
        /// The signing secret could not be decrypted.
        SecretUnreadable = "secret_unreadable",
    }
);
