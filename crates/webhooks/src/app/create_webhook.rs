//! Creates an endpoint.

use assay_contracts::ids::OrganizationId;
use assay_contracts::webhook::{CreatedWebhook, NewWebhook, Webhook};
use assay_platform::auth::KeyRing;
use assay_platform::db::idempotency::{Fingerprint, IdempotencyKey, KeyReuse, Record, RecordedResponse};
use assay_platform::runtime::{new_id, now, random_bytes};

use super::RequestError;
use crate::domain::address::AddressRules;
use crate::domain::endpoint::{Endpoint, EndpointReference};
use crate::domain::secret::{SealedSecrets, Secret};
use crate::store::{CreateOutcome, Creation, WebhookStore};

pub(crate) struct CreateWebhook {
    pub(crate) organization_id: OrganizationId,
    pub(crate) webhook: NewWebhook,
    /// Idempotency key and fingerprint of the body.
    pub(crate) idempotency: Option<(IdempotencyKey, Fingerprint)>,
    /// Maximum number of endpoints of the organization.
    pub(crate) limit: u32,
}

/// Creates an endpoint and returns it with its secret. A repeated request returns the same endpoint.
///
/// # Errors
/// [`RequestError`]; nothing is stored then.
pub(crate) async fn create_webhook(
    store: &WebhookStore,
    keys: &KeyRing,
    rules: &AddressRules,
    request: CreateWebhook,
) -> Result<RecordedResponse, RequestError> {
    let CreateWebhook { organization_id, webhook, idempotency, limit } = request;
    rules.check_url(&webhook.url)?;
    let (id, now) = (new_id(), now());
    let secret = Secret::from(random_bytes()?);
    let endpoint = Endpoint {
        id,
        organization_id,
        url: webhook.url,
        description: webhook.description,
        events: webhook.events,
        low_score_below: webhook.axis_low_score_below,
        enabled: true,
        disabled_reason: None,
        secrets: SealedSecrets { current: secret.seal(keys, id)?, previous: None },
        failing_since: None,
        created_at: now,
        updated_at: now,
    };
    // Without the secret: the recorded response stays in the database unencrypted for a day.
    let without_secret =
        RecordedResponse::created(format!("/v1/webhooks/{id}"), &Webhook::from(endpoint.clone()))?;
    let record = Record::of(organization_id, idempotency, &without_secret);
    match store.create(Creation { endpoint, record, limit }).await? {
        CreateOutcome::Created => with_secret(without_secret, &secret),
        CreateOutcome::IdempotencyKeyReused(KeyReuse::Replay(first)) => {
            replay_response(store, keys, organization_id, first).await
        }
        CreateOutcome::IdempotencyKeyReused(KeyReuse::Conflict) => Err(RequestError::IdempotencyConflict),
        CreateOutcome::LimitReached => Err(RequestError::LimitReached(limit)),
    }
}

/// The recorded response with the current secret of the endpoint; without a secret when the endpoint was deleted.
async fn replay_response(
    store: &WebhookStore,
    keys: &KeyRing,
    organization_id: OrganizationId,
    first: RecordedResponse,
) -> Result<RecordedResponse, RequestError> {
    let webhook: Webhook = serde_json::from_str(&first.body)?;
    match store.find(EndpointReference { organization_id, id: webhook.id }).await? {
        Some(endpoint) => with_secret(first, &endpoint.secrets.current.open(keys, endpoint.id)?),
        None => Ok(first),
    }
}

fn with_secret(response: RecordedResponse, secret: &Secret) -> Result<RecordedResponse, RequestError> {
    let webhook = serde_json::from_str(&response.body)?;
    let body = serde_json::to_string(&CreatedWebhook { webhook, secret: secret.reveal() })?;
    Ok(RecordedResponse { body, ..response })
}
