//! Publishing with confirms. A message is sent when the broker has confirmed it and has not returned it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use assay_platform::runtime::{LockExt as _, RuntimeHandle};
use futures_util::future::join_all;
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::{Channel, Confirmation, Connection, ErrorKind};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::connection::Connector;
use super::message::Message;
use super::names::Names;
use super::topology;

/// For publishing a batch, up to its last confirm.
const SEND_DEADLINE: Duration = Duration::from_secs(10);

/// How long `ping` waits for an attempt to connect. A broker that is up takes less.
const PING_DEADLINE: Duration = Duration::from_millis(200);

/// A connection for publishing only: a broker short of memory or disk blocks connections that publish, and must not
/// block acknowledgements with them.
pub(super) struct Publisher {
    names: Names,
    link: Arc<Link>,
    /// Runs background attempts to connect, which must not end with the request that started them.
    runtime: RuntimeHandle,
    /// The last attempt to connect in the background.
    background: Mutex<Option<AbortOnDropHandle<()>>>,
}

/// The shared connection, if any.
struct Link {
    connector: Connector,
    state: Mutex<LinkState>,
    /// Held while connecting: one caller connects, the others wait.
    connecting: tokio::sync::Mutex<()>,
    /// Notified after each attempt to connect.
    connect_attempted: Notify,
}

#[derive(Default)]
struct LinkState {
    connection: Option<Arc<Connection>>,
    idle_channels: Vec<Channel>,
    /// Error of the last attempt to connect, if it failed.
    connect_error: Option<String>,
}

/// A message was not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SendError {
    /// The broker is unreachable, nacked the message, or did not confirm in time.
    Unavailable(String),
    /// The message is mandatory and no queue is bound to its routing key.
    Unroutable,
    /// The broker closed the channel because of this message: it is too large, for example.
    Refused(String),
}

/// The confirm of one message, before returned messages are taken into account.
type Confirmed = Result<Confirmation, lapin::Error>;

impl Publisher {
    pub(super) fn new(connector: Connector, names: Names) -> Self {
        let link = Link {
            connector,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            connect_attempted: Notify::new(),
        };
        Self { names, link: Arc::new(link), runtime: RuntimeHandle::current(), background: Mutex::default() }
    }

    /// Publishes messages and waits for the broker's confirms; the results are in the same order. When the broker closes the
    /// channel because of one message, all messages of the batch fail; each is then published again separately.
    pub(super) async fn send(&self, messages: &[Message<'_>]) -> Vec<Result<(), SendError>> {
        let results = self.send_together(messages).await;
        let is_refused = |result: &Result<(), SendError>| matches!(result, Err(SendError::Refused(_)));
        if messages.len() < 2 || !results.iter().any(is_refused) {
            return results;
        }
        let mut results = Vec::with_capacity(messages.len());
        for message in messages {
            results.extend(self.send_together(std::slice::from_ref(message)).await);
        }
        results
    }

    async fn send_together(&self, messages: &[Message<'_>]) -> Vec<Result<(), SendError>> {
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
                    self.link.release(channel);
                }
                send_results(messages, confirmed)
            }
            Ok(Err(reason)) => all_unavailable(reason),
            Err(_) => {
                self.link.discard(&connection);
                all_unavailable(format!("broker did not confirm within {SEND_DEADLINE:?}"))
            }
        }
    }

    /// Whether the connection is open and not blocked. Without one it connects in the background, so that the publisher
    /// recovers even while nothing is published; a silent broker does not hold up the caller.
    pub(super) async fn ping(&self) -> Result<(), String> {
        if let Some(current) = self.link.current() {
            return current.map(drop);
        }
        let attempted = self.link.connect_attempted.notified();
        self.connect_in_background();
        let _ = timeout(PING_DEADLINE, attempted).await;
        match self.link.current() {
            Some(current) => current.map(drop),
            None => Err(self.link.connect_error()),
        }
    }

    fn connect_in_background(&self) {
        let mut background = self.background.locked();
        if background.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let link = Arc::clone(&self.link);
            *background = Some(self.runtime.spawn(async move {
                // An error is kept in `connect_error`.
                let _ = link.connected().await;
            }));
        }
    }

    /// A channel for one batch at a time: lapin attaches a returned message to the next confirm of the channel, which
    /// can be attributed only within one batch.
    async fn channel(&self, connection: &Connection) -> lapin::Result<Channel> {
        let idle = self.link.state.locked().idle_channels.pop();
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
    /// The current connection, or a new one. One caller connects and the others wait for it.
    async fn connected(&self) -> Result<Arc<Connection>, String> {
        if let Some(current) = self.current() {
            return current;
        }
        let _connecting = self.connecting.lock().await;
        // Another caller may have connected meanwhile.
        if let Some(current) = self.current() {
            return current;
        }
        let connected = self.connector.connect("assay publisher").await.map(Arc::new);
        {
            let mut state = self.state.locked();
            state.idle_channels.clear();
            state.connection = connected.as_ref().ok().cloned();
            state.connect_error = connected.as_ref().err().cloned();
        }
        self.connect_attempted.notify_waiters();
        if connected.is_ok() {
            tracing::info!("publisher is connected to the broker");
        }
        connected
    }

    /// The open connection, or an error while it is blocked; `None` when it must be opened first.
    fn current(&self) -> Option<Result<Arc<Connection>, String>> {
        let state = self.state.locked();
        let connection = state.connection.as_ref().filter(|connection| connection.status().connected())?;
        if connection.status().blocked() {
            return Some(Err("broker is short of memory or disk and takes no messages".to_owned()));
        }
        Some(Ok(connection.clone()))
    }

    fn connect_error(&self) -> String {
        let error = self.state.locked().connect_error.clone();
        error.unwrap_or_else(|| "the publisher is not connected to the broker yet".to_owned())
    }

    /// Drops a connection that does not answer, so that the next caller opens another.
    fn discard(&self, connection: &Arc<Connection>) {
        let mut state = self.state.locked();
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            state.idle_channels.clear();
        }
    }

    fn release(&self, channel: Channel) {
        self.state.locked().idle_channels.push(channel);
    }
}

/// Publishes all messages before it waits for the first confirm.
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
            Ok(confirm) => confirm.await,
            Err(error) => Err(error),
        }
    });
    join_all(confirms).await
}

/// Whether the broker closed the channel because of a message. Every message on the channel fails with this error.
fn is_refusal(error: &lapin::Error) -> bool {
    matches!(error.kind(), ErrorKind::ProtocolError(error)
        if *error.kind() == AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED))
}

/// A returned message may come with the confirm of another message of the batch (when the broker confirms several at
/// once), so it is matched by its address: all mandatory messages to an address without a queue are unroutable.
fn send_results(messages: &[Message<'_>], confirmed: Vec<Confirmed>) -> Vec<Result<(), SendError>> {
    let mut accepted = Vec::with_capacity(messages.len());
    let mut unroutable = HashSet::new();
    for confirmation in confirmed {
        let is_ack = confirmation.as_ref().map(Confirmation::is_ack);
        accepted.push(match is_ack {
            Ok(true) => Ok(()),
            Ok(false) => Err(SendError::Unavailable("broker nacked the message".to_owned())),
            Err(error) if is_refusal(error) => Err(SendError::Refused(error.to_string())),
            Err(error) => Err(SendError::Unavailable(error.to_string())),
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
