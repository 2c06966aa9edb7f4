//! What the role does.

mod change_webhook;
mod create_webhook;
mod error;
mod inspect_deliveries;
mod keep_house;
mod list_interest;
mod post_message;
mod queue_message;
mod send_messages;
mod show_secret;
mod take_in;

pub(crate) use self::change_webhook::{
    ListWebhooks, change_webhook, delete_webhook, list_webhooks, read_webhook,
};
pub(crate) use self::create_webhook::{CreateWebhook, create_webhook};
pub(crate) use self::error::RequestError;
pub(crate) use self::inspect_deliveries::{ListDeliveries, list_deliveries, read_delivery};
pub(crate) use self::keep_house::{keep_house, reseal_secrets};
pub(crate) use self::list_interest::list_interest;
pub(crate) use self::post_message::Poster;
pub(crate) use self::queue_message::{replay_delivery, send_test};
pub(crate) use self::send_messages::{Sender, SenderLimits, send_messages};
pub(crate) use self::show_secret::{rotate_secret, show_secret};
pub(crate) use self::take_in::{Intake, decode};
