//! Makes an endpoint.

use assay_contracts::ids::OrganizationId;
use assay_contracts::webhook::{CreatedWebhook, NewWebhook, Webhook};
use assay_platform::auth::SigningKeys;
use assay_platform::db::idempotency::{Earlier, Fingerprint, IdempotencyKey, Record, StoredAnswer};
use assay_platform::runtime::{new_id, now, random_bytes};

use super::RequestError;
use crate::domain::address::AddressRules;
use crate::domain::endpoint::Endpoint;
use crate::domain::secret::{SealedSecrets, Secret};
use crate::store::{Created, Creation, WebhookStore};

const CREATED: u16 = 201;

/// A request to make an endpoint.
pub(crate) struct CreateWebhook {
    /// The tenant.
    pub(crate) organization_id: OrganizationId,
    /// What is wanted.
    pub(crate) webhook: NewWebhook,
    /// The request's idempotency key and the fingerprint of its body.
    pub(crate) idempotency: Option<(IdempotencyKey, Fingerprint)>,
    /// How many endpoints the organization may have.
    pub(crate) limit: u32,
}

/// Makes an endpoint and answers with it and its secret; the same request again gets the same endpoint.
///
/// # Errors
/// [`RequestError`]; nothing is stored then.
pub(crate) async fn create_webhook(
    store: &dyn WebhookStore,
    keys: &SigningKeys,
    rules: &AddressRules,
    request: CreateWebhook,
) -> Result<StoredAnswer, RequestError> {
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
    // The stored answer holds no secret: it lies in the database unencrypted for a day.
    let stored = StoredAnswer {
        status: CREATED,
        location: Some(format!("/v1/webhooks/{id}")),
        body: serde_json::to_string(&Webhook::from(endpoint.clone()))?,
    };
    let record = idempotency.map(|(key, fingerprint)| Record {
        organization_id,
        key,
        fingerprint,
        answer: stored.clone(),
    });
    match store.create(Creation { endpoint, record, limit }).await? {
        Created::New => with_secret(stored, &secret),
        Created::Earlier(Earlier::SameRequest(first)) => again(store, keys, organization_id, first).await,
        Created::Earlier(Earlier::OtherRequest) => Err(RequestError::IdempotencyConflict),
        Created::TooMany => Err(RequestError::LimitReached(limit)),
    }
}

/// The first answer with the secret that the endpoint has now; without one when it is deleted.
async fn again(
    store: &dyn WebhookStore,
    keys: &SigningKeys,
    organization_id: OrganizationId,
    first: StoredAnswer,
) -> Result<StoredAnswer, RequestError> {
    let webhook: Webhook = serde_json::from_str(&first.body)?;
    match store.find(organization_id, webhook.id).await? {
        Some(endpoint) => with_secret(first, &endpoint.secrets.current.open(keys, endpoint.id)?),
        None => Ok(first),
    }
}

fn with_secret(answer: StoredAnswer, secret: &Secret) -> Result<StoredAnswer, RequestError> {
    let webhook = serde_json::from_str(&answer.body)?;
    let body = serde_json::to_string(&CreatedWebhook { webhook, secret: secret.reveal() })?;
    Ok(StoredAnswer { body, ..answer })
}
