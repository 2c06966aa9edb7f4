//! Shows the secret of an endpoint, and replaces it.

use assay_contracts::webhook::WebhookSecret;
use assay_platform::auth::KeyRing;
use assay_platform::runtime::{now, random_bytes};

use super::{RequestError, read_webhook};
use crate::domain::endpoint::EndpointReference;
use crate::domain::secret::Secret;
use crate::store::WebhookStore;

pub(crate) async fn show_secret(
    store: &WebhookStore,
    keys: &KeyRing,
    endpoint: EndpointReference,
) -> Result<WebhookSecret, RequestError> {
    let endpoint = read_webhook(store, endpoint).await?;
    let secret = endpoint.secrets.current.open(keys, endpoint.id)?;
    let previous_until = endpoint.secrets.previous.map(|(_, until)| until).filter(|until| *until > now());
    Ok(WebhookSecret { secret: secret.reveal(), previous_secret_expires_at: previous_until })
}

/// Gives an endpoint a new secret. The current one keeps signing as well for `previous_millis`, so that the receiver can
/// switch without a gap. A secret from an earlier rotation stops signing at once.
pub(crate) async fn rotate_secret(
    store: &WebhookStore,
    keys: &KeyRing,
    endpoint: EndpointReference,
    previous_millis: i64,
) -> Result<WebhookSecret, RequestError> {
    let secret = Secret::from(random_bytes()?);
    let until = now().plus_millis(previous_millis);
    if !store.rotate(endpoint, secret.seal(keys, endpoint.id)?, until).await? {
        return Err(RequestError::NotFound);
    }
    tracing::info!(webhook = %endpoint.id, "secret of a webhook rotated");
    Ok(WebhookSecret { secret: secret.reveal(), previous_secret_expires_at: Some(until) })
}
