//! Publishing with confirms. A message counts as sent when the broker has confirmed it and has not returned it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assay_platform::runtime::{Home, Started, within};
use futures_util::future::join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{Channel, Confirmation, Connection};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::connection::Connector;
use super::message::Message;
use super::names::Names;
use super::topology;

/// For publishing a batch and having all of it confirmed.
const SEND_DEADLINE: Duration = Duration::from_secs(10);

/// For how long somebody who asks for the state waits for an attempt to connect. A broker that is there takes less.
const ASKING_PATIENCE: Duration = Duration::from_millis(200);

/// A connection for publishing only: a broker short of memory or disk stops reading from connections that publish,
/// and must not stop acknowledgements with them.
pub(super) struct Publisher {
    names: Names,
    link: Arc<Link>,
    /// Where connections that nobody waits for are made: not on the thread of the request that asked.
    home: Home,
    /// The last attempt to connect that nobody waits for.
    background: Mutex<Option<Started>>,
}

/// The connection, as far as there is one.
struct Link {
    connector: Connector,
    state: Mutex<LinkState>,
    /// Held by the one who connects.
    connecting: tokio::sync::Mutex<()>,
    /// An attempt to connect has ended.
    attempted: Notify,
}

#[derive(Default)]
struct LinkState {
    connection: Option<Arc<Connection>>,
    idle: Vec<Channel>,
    /// Why the last attempt to connect failed, unless it succeeded.
    refusal: Option<String>,
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
        let link = Link {
            connector,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            attempted: Notify::new(),
        };
        Self { names, link: Arc::new(link), home: Home::here(), background: Mutex::default() }
    }

    /// Publishes messages and waits until the broker has confirmed them; the answers are in their order.
    pub(super) async fn send(&self, messages: &[Message<'_>]) -> Vec<Result<(), SendError>> {
        let all_unavailable =
            |reason: String| messages.iter().map(|_| Err(SendError::Unavailable(reason.clone()))).collect();
        if messages.is_empty() {
            return Vec::new();
        }
        let connection = match self.link.connected().await {
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
                    self.link.put_back(channel);
                }
                judge(messages, confirmed)
            }
            Ok(Err(reason)) => all_unavailable(reason),
            Err(_) => {
                self.link.give_up(&connection);
                all_unavailable(format!("broker did not confirm within {SEND_DEADLINE:?}"))
            }
        }
    }

    /// Whether the broker is there and takes messages, as far as is known. Without a connection one is made in the
    /// background, so that it comes back while nothing is published, too; a broker that is silent does not hold up
    /// whoever asks.
    pub(super) async fn ping(&self) -> Result<(), String> {
        if let Some(state) = self.link.known() {
            return state.map(drop);
        }
        let attempted = self.link.attempted.notified();
        self.connect_in_background();
        let _ = within(ASKING_PATIENCE, attempted).await;
        match self.link.known() {
            Some(state) => state.map(drop),
            None => Err(self.link.refusal()),
        }
    }

    fn connect_in_background(&self) {
        // Nothing panics while the lock is held.
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        if background.as_ref().is_none_or(Started::has_ended) {
            let link = Arc::clone(&self.link);
            *background = Some(self.home.start(async move {
                // What came of it is remembered.
                let _ = link.connected().await;
            }));
        }
    }

    /// A channel for one batch alone: lapin hands a returned message to the next confirm of the channel, which only
    /// within one batch can be told apart.
    async fn channel(&self, connection: &Connection) -> lapin::Result<Channel> {
        let idle = self.link.lock().idle.pop();
        if let Some(channel) = idle.filter(|channel| channel.status().connected()) {
            return Ok(channel);
        }
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        topology::declare_exchange(&channel, &self.names).await?;
        Ok(channel)
    }
}

impl Link {
    /// The connection, made anew if it is gone. One caller connects and the others wait for it, on purpose.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        if let Some(known) = self.known() {
            return known;
        }
        let _connecting = self.connecting.lock().await;
        // Another one may have connected meanwhile.
        if let Some(known) = self.known() {
            return known;
        }
        let connected = self.connector.connect("assay publisher").await.map(Arc::new);
        {
            let mut state = self.lock();
            state.idle.clear();
            state.connection = connected.as_ref().ok().cloned();
            state.refusal = connected.as_ref().err().cloned();
        }
        self.attempted.notify_waiters();
        if connected.is_ok() {
            tracing::info!("publisher is connected to the broker");
        }
        connected
    }

    /// The connection, or why it cannot be used; none when one must be made first.
    fn known(&self) -> Option<Result<Arc<Connection>, String>> {
        let state = self.lock();
        let connection = state.connection.as_ref().filter(|connection| connection.status().connected())?;
        if connection.status().blocked() {
            return Some(Err("broker is short of memory or disk and takes no messages".to_owned()));
        }
        Some(Ok(connection.clone()))
    }

    fn refusal(&self) -> String {
        let refusal = self.lock().refusal.clone();
        refusal.unwrap_or_else(|| "the publisher is not connected to the broker yet".to_owned())
    }

    /// Forgets a connection that does not answer, so that the next caller makes another.
    fn give_up(&self, connection: &Arc<Connection>) {
        let mut state = self.lock();
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            state.idle.clear();
        }
    }

    fn put_back(&self, channel: Channel) {
        self.lock().idle.push(channel);
    }

    /// The state is only changed by single calls that do not panic.
    fn lock(&self) -> std::sync::MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
            &message.payload,
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
