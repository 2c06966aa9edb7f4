//! Use cases of the role.

mod create_webhook;
mod enqueue_messages;
mod error;
mod in_flight;
mod inspect_deliveries;
mod list_subscribers;
mod look_ups;
mod manage_webhooks;
mod request_limit;
mod request_message;
mod run_maintenance;
mod secrets;
mod send_messages;
mod webhook_client;

pub(crate) use self::create_webhook::{CreateWebhook, create_webhook};
pub(crate) use self::enqueue_messages::{EnqueueMessages, decode_event};
pub(crate) use self::error::RequestError;
pub(crate) use self::inspect_deliveries::{ListDeliveries, list_deliveries, read_delivery};
pub(crate) use self::list_subscribers::list_evaluation_subscribers;
pub(crate) use self::manage_webhooks::{change_webhook, delete_webhook, list_webhooks, read_webhook};
pub(crate) use self::request_limit::RequestLimit;
pub(crate) use self::request_message::{replay_delivery, send_test};
pub(crate) use self::run_maintenance::run_maintenance;
pub(crate) use self::secrets::{rotate_secret, show_secret};
pub(crate) use self::send_messages::{Sender, SenderLimits, send_messages};
pub(crate) use self::webhook_client::WebhookClient;
