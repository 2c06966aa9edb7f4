//! Webhooks: endpoints of the caller that are told what happens, and the log of what they were told. Messages follow Standard
//! Webhooks 1.0; what they say is in `proto-docs/webhooks.md`.

mod body;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::body::{
    DEFAULT_LOW_SCORE, MAX_URL_BYTES, NewWebhook, NewWebhookRequest, WebhookChange, WebhookChangeRequest,
};
use crate::evaluation::Score;
use crate::ids::{WebhookDeliveryId, WebhookId};
use crate::time::Timestamp;

/// What an endpoint can ask to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum WebhookEvent {
    /// A conversation was evaluated.
    #[serde(rename = "evaluation.completed")]
    EvaluationCompleted,
    /// A conversation cannot be evaluated.
    #[serde(rename = "evaluation.failed")]
    EvaluationFailed,
    /// The transcript contradicts a vendor's charge.
    #[serde(rename = "resolution.disputed")]
    ResolutionDisputed,
    /// The AXIS score is below the endpoint's threshold.
    #[serde(rename = "axis.low_score")]
    AxisLowScore,
    /// The file of an export can be downloaded.
    #[serde(rename = "export.completed")]
    ExportCompleted,
    /// An export failed.
    #[serde(rename = "export.failed")]
    ExportFailed,
    /// A trial that was asked for; no endpoint subscribes to it.
    #[serde(rename = "webhook.test")]
    Test,
}

impl WebhookEvent {
    /// What an endpoint may subscribe to.
    pub const SUBSCRIBABLE: [Self; 6] = [
        Self::EvaluationCompleted,
        Self::EvaluationFailed,
        Self::ResolutionDisputed,
        Self::AxisLowScore,
        Self::ExportCompleted,
        Self::ExportFailed,
    ];

    /// The name in messages and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EvaluationCompleted => "evaluation.completed",
            Self::EvaluationFailed => "evaluation.failed",
            Self::ResolutionDisputed => "resolution.disputed",
            Self::AxisLowScore => "axis.low_score",
            Self::ExportCompleted => "export.completed",
            Self::ExportFailed => "export.failed",
            Self::Test => "webhook.test",
        }
    }

    /// The event with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::SUBSCRIBABLE.into_iter().chain([Self::Test]).find(|event| event.as_str() == name)
    }

    /// Whether it tells of an evaluation.
    pub const fn is_of_evaluation(self) -> bool {
        matches!(
            self,
            Self::EvaluationCompleted
                | Self::EvaluationFailed
                | Self::ResolutionDisputed
                | Self::AxisLowScore
        )
    }

    fn subscribable(name: &str) -> Option<Self> {
        Self::from_name(name).filter(|event| *event != Self::Test)
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
    /// What it is for, in the words of whoever made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub description: Option<String>,
    /// What it is told.
    #[schema(min_items = 1)]
    pub events: BTreeSet<WebhookEvent>,
    /// `axis.low_score` is told of scores below this one.
    #[schema(value_type = f64, minimum = 1.0, maximum = 5.0, example = 3.0)]
    pub axis_low_score_below: Score,
    /// Whether it is told anything at present.
    pub enabled: bool,
    /// Why the service disabled it; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub disabled_reason: Option<DisabledReason>,
    /// Since when its attempts fail, epoch milliseconds; absent when the last one did not.
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
    /// What its messages are signed with: `whsec_` and base64.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    pub secret: String,
}

/// What messages to an endpoint are signed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookSecret {
    /// The secret: `whsec_` and base64.
    #[schema(example = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")]
    pub secret: String,
    /// Until when messages are also signed with the secret before it, epoch milliseconds; absent when they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, example = 1_763_600_000_000_i64)]
    pub previous_secret_expires_at: Option<Timestamp>,
}

/// Why the service disabled an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// It answered 410.
    Gone,
    /// Its attempts failed for days.
    Failing,
}

impl DisabledReason {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Gone, Self::Failing].into_iter().find(|reason| reason.as_str() == name)
    }
}

/// State of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// An attempt is still to come.
    Pending,
    /// The endpoint took it.
    Delivered,
    /// All attempts failed, or the endpoint answered 410.
    Failed,
}

impl DeliveryStatus {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// One message to one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDelivery {
    /// Delivery id: the header `webhook-id` of every attempt.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: WebhookDeliveryId,
    /// What it tells of.
    #[serde(rename = "type")]
    pub event: WebhookEvent,
    /// State.
    pub status: DeliveryStatus,
    /// Attempts so far.
    pub attempts: u32,
    /// When the next attempt is due, epoch milliseconds; absent when none is to come.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, example = 1_763_600_000_000_i64)]
    pub next_attempt_at: Option<Timestamp>,
    /// Epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub created_at: Timestamp,
}

/// One message to one endpoint, with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDeliveryDetails {
    /// The message.
    #[serde(flatten)]
    pub delivery: WebhookDelivery,
    /// What was posted, or will be; absent when its ticket was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub payload: Option<serde_json::Value>,
    /// The latest attempts, oldest first.
    pub attempt_log: Vec<WebhookAttempt>,
}

/// One attempt at a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookAttempt {
    /// From 1.
    pub number: u32,
    /// When it began, epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub attempted_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What the endpoint answered; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 503)]
    pub status_code: Option<u16>,
    /// Why it failed; absent when it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<AttemptError>,
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptError {
    /// The answer was not 2xx.
    Status,
    /// There was no answer in time.
    Timeout,
    /// The host's name has no address, or none that webhooks may be sent to.
    NameNotResolved,
    /// Webhooks may not be sent to the URL itself, whatever its host's name leads to.
    AddressRefused,
    /// No connection, or one that broke off; also when the certificate is not valid.
    ConnectionFailed,
    /// The secret could not be read on our side.
    SecretUnreadable,
}

impl AttemptError {
    /// Every reason.
    pub const ALL: [Self; 6] = [
        Self::Status,
        Self::Timeout,
        Self::NameNotResolved,
        Self::AddressRefused,
        Self::ConnectionFailed,
        Self::SecretUnreadable,
    ];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::NameNotResolved => "name_not_resolved",
            Self::AddressRefused => "address_refused",
            Self::ConnectionFailed => "connection_failed",
            Self::SecretUnreadable => "secret_unreadable",
        }
    }

    /// The reason with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|error| error.as_str() == name)
    }
}
