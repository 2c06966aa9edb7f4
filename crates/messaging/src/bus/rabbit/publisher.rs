//! Publishing with confirms. A message counts as sent when the broker has confirmed it and has not returned it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Channel, Confirmation, Connection};
use tokio::time::timeout;

use super::connection::Connector;
use super::message::Message;
use super::names::Names;
use super::topology;

/// For publishing a batch and having all of it confirmed.
const SEND_DEADLINE: Duration = Duration::from_secs(10);

/// A connection for publishing only: a broker short of memory or disk stops reading from connections that publish,
/// and must not stop acknowledgements with them.
pub(super) struct Publisher {
    connector: Connector,
    names: Names,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    idle: Mutex<Vec<Channel>>,
}

/// A message was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SendError {
    /// The broker is not there, refuses, or has not confirmed in time.
    Unavailable(String),
    /// The message is mandatory and no queue takes it.
    Unroutable,
}

/// What became of one message, before returned messages are taken into account.
type Confirmed = Result<Confirmation, String>;

impl Publisher {
    pub(super) fn new(connector: Connector, names: Names) -> Self {
        Self { connector, names, connection: tokio::sync::Mutex::new(None), idle: Mutex::default() }
    }

    /// Publishes messages and waits until the broker has confirmed them; the answers are in their order.
    pub(super) async fn send(&self, messages: &[Message<'_>]) -> Vec<Result<(), SendError>> {
        let all_unavailable =
            |reason: String| messages.iter().map(|_| Err(SendError::Unavailable(reason.clone()))).collect();
        if messages.is_empty() {
            return Vec::new();
        }
        let connection = match self.connected().await {
            Ok(connection) => connection,
            Err(reason) => return all_unavailable(reason),
        };
        let sending = async {
            let channel = self.channel(&connection).await.map_err(|error| error.to_string())?;
            let confirmed = publish(&channel, messages).await;
            Ok((channel, confirmed))
        };
        match timeout(SEND_DEADLINE, sending).await {
            Ok(Ok((channel, confirmed))) => {
                if confirmed.iter().all(Result::is_ok) {
                    self.put_back(channel);
                }
                judge(messages, confirmed)
            }
            Ok(Err(reason)) => all_unavailable(reason),
            Err(_) => {
                self.give_up(&connection).await;
                all_unavailable(format!("broker did not confirm within {SEND_DEADLINE:?}"))
            }
        }
    }

    /// Whether the broker is there and takes messages.
    pub(super) async fn ping(&self) -> Result<(), String> {
        self.connected().await.map(drop)
    }

    /// The connection, made anew if it is gone. One caller connects and the others wait for it, on purpose.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        let mut current = self.connection.lock().await;
        if let Some(connection) = current.as_ref().filter(|connection| connection.status().connected()) {
            if connection.status().blocked() {
                return Err("broker is short of memory or disk and takes no messages".to_owned());
            }
            return Ok(connection.clone());
        }
        *current = None;
        self.lock_idle().clear();
        let connection = Arc::new(self.connector.connect("assay publisher").await?);
        tracing::info!("publisher is connected to the broker");
        Ok(current.insert(connection).clone())
    }

    /// Forgets a connection that does not answer, so that the next caller makes another.
    async fn give_up(&self, connection: &Arc<Connection>) {
        let mut current = self.connection.lock().await;
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            *current = None;
            self.lock_idle().clear();
        }
    }

    /// A channel for one batch alone: lapin hands a returned message to the next confirm of the channel, which only
    /// within one batch can be told apart.
    async fn channel(&self, connection: &Connection) -> lapin::Result<Channel> {
        let idle = self.lock_idle().pop();
        if let Some(channel) = idle.filter(|channel| channel.status().connected()) {
            return Ok(channel);
        }
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        topology::declare_exchange(&channel, &self.names).await?;
        Ok(channel)
    }

    fn put_back(&self, channel: Channel) {
        self.lock_idle().push(channel);
    }

    /// The list is only changed by single calls that do not panic.
    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Vec<Channel>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Publishes all before it waits for the first confirm.
async fn publish(channel: &Channel, messages: &[Message<'_>]) -> Vec<Confirmed> {
    let mut confirms = Vec::with_capacity(messages.len());
    for message in messages {
        let confirm = channel.basic_publish(
            message.exchange.clone(),
            message.routing_key.clone(),
            BasicPublishOptions { mandatory: message.mandatory, immediate: false },
            message.payload,
            message.properties.clone(),
        );
        confirms.push(confirm.await);
    }
    let confirms = confirms.into_iter().map(|confirm| async {
        match confirm {
            Ok(confirm) => confirm.await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    });
    join_all(confirms).await
}

/// A returned message may come with the confirm of another message of the batch (when the broker confirms several at
/// once), so its address tells whom it concerns: all mandatory messages to an address without a queue are unroutable.
fn judge(messages: &[Message<'_>], confirmed: Vec<Confirmed>) -> Vec<Result<(), SendError>> {
    let mut accepted = Vec::with_capacity(messages.len());
    let mut unroutable = HashSet::new();
    for confirmation in confirmed {
        let is_ack = confirmation.as_ref().map(Confirmation::is_ack);
        accepted.push(match is_ack {
            Ok(true) => Ok(()),
            Ok(false) => Err(SendError::Unavailable("broker refused the message".to_owned())),
            Err(reason) => Err(SendError::Unavailable(reason.clone())),
        });
        if let Some(returned) = confirmation.ok().and_then(Confirmation::take_message) {
            unroutable.insert((returned.delivery.exchange, returned.delivery.routing_key));
        }
    }
    messages
        .iter()
        .zip(accepted)
        .map(|(message, accepted)| {
            let address = (message.exchange.clone(), message.routing_key.clone());
            if message.mandatory && unroutable.contains(&address) {
                return Err(SendError::Unroutable);
            }
            accepted
        })
        .collect()
}
