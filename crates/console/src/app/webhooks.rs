//! Webhooks of the organization.

use assay_clients::{Call, ClientError, ServiceClient};
use assay_contracts::evaluations::encode_query;
use assay_contracts::ids::{WebhookDeliveryId, WebhookId};
use assay_contracts::page::Page;
use assay_contracts::webhook::{
    CreatedWebhook, Webhook, WebhookDelivery, WebhookDeliveryDetails, WebhookSecret,
};
use assay_platform::auth::ServiceClaims;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::services::{OrganizationServices, send_without_body};

const WEBHOOKS: &str = "/internal/v1/webhooks";

/// The service of webhooks on behalf of a signed-in person.
#[derive(Clone, Copy)]
pub(crate) struct OrganizationWebhooks<'v> {
    service: &'v ServiceClient,
    claims: &'v ServiceClaims,
}

impl<'v> OrganizationServices<'v> {
    /// `None` when webhooks are turned off.
    pub(crate) fn webhooks(self) -> Option<OrganizationWebhooks<'v>> {
        let service = self.services.webhooks.as_ref()?;
        Some(OrganizationWebhooks { service, claims: self.claims })
    }
}

impl OrganizationWebhooks<'_> {
    /// The newest hundred webhooks, more than an organization may have by default.
    pub(crate) async fn list(self) -> Result<Page<Webhook>, ClientError> {
        self.service.get_json(self.claims, &format!("{WEBHOOKS}?limit=100")).await
    }

    pub(crate) async fn read(self, id: WebhookId) -> Result<Webhook, ClientError> {
        self.service.get_json(self.claims, &format!("{WEBHOOKS}/{id}")).await
    }

    /// Creates a webhook from the body of the public operation, which the service checks.
    pub(crate) async fn create(self, body: &Value) -> Result<CreatedWebhook, ClientError> {
        self.service.post_json(self.claims, WEBHOOKS, body).await
    }

    pub(crate) async fn change(self, id: WebhookId, body: &Value) -> Result<Webhook, ClientError> {
        let (path, body) = (format!("{WEBHOOKS}/{id}"), Some(body.to_string().into()));
        let call = Call { method: Method::PATCH, path: &path, headers: HeaderMap::new(), body };
        self.service.call_json(self.claims, call).await
    }

    pub(crate) async fn delete(self, id: WebhookId) -> Result<(), ClientError> {
        send_without_body(self.service, self.claims, Method::DELETE, &format!("{WEBHOOKS}/{id}")).await
    }

    pub(crate) async fn rotate_secret(self, id: WebhookId) -> Result<WebhookSecret, ClientError> {
        self.service.post_json(self.claims, &format!("{WEBHOOKS}/{id}/secret/rotate"), &Value::Null).await
    }

    pub(crate) async fn send_test(self, id: WebhookId) -> Result<(), ClientError> {
        send_without_body(self.service, self.claims, Method::POST, &format!("{WEBHOOKS}/{id}/test")).await
    }

    /// A page of deliveries, newest first; pages call them messages.
    pub(crate) async fn list_deliveries(
        self,
        id: WebhookId,
        status: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<WebhookDelivery>, ClientError> {
        let query = [("limit", Some("25")), ("status", status), ("cursor", cursor)];
        let query = query.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let path = format!("{WEBHOOKS}/{id}/deliveries?{}", encode_query(query));
        self.service.get_json(self.claims, &path).await
    }

    pub(crate) async fn read_delivery(
        self,
        id: WebhookId,
        delivery: WebhookDeliveryId,
    ) -> Result<WebhookDeliveryDetails, ClientError> {
        self.service.get_json(self.claims, &format!("{WEBHOOKS}/{id}/deliveries/{delivery}")).await
    }

    pub(crate) async fn replay_delivery(
        self,
        id: WebhookId,
        delivery: WebhookDeliveryId,
    ) -> Result<(), ClientError> {
        let path = format!("{WEBHOOKS}/{id}/deliveries/{delivery}/replay");
        send_without_body(self.service, self.claims, Method::POST, &path).await
    }
}
