//! Opening and closing connections, with deadlines.

use std::time::Duration;

use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties};
use tokio::time::timeout;

use crate::bus::errors::BusError;

/// For TCP, TLS and the AMQP handshake together.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// For the close handshake, after which the connection is dropped.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);
/// A peer that is silent for twice as long counts as lost. The URL can override it.
const HEARTBEAT_SECONDS: u16 = 10;
/// Reply code of a normal close (AMQP 0-9-1, section 1.4.2.10, reply-success).
pub(super) const REPLY_SUCCESS: u16 = 200;

/// The broker's address and credentials.
#[derive(Clone)]
pub(super) struct Connector {
    uri: AMQPUri,
}

impl Connector {
    pub(super) fn parse(url: &str) -> Result<Self, BusError> {
        let mut uri: AMQPUri = url.parse().map_err(BusError::InvalidUrl)?;
        uri.query.heartbeat = uri.query.heartbeat.or(Some(HEARTBEAT_SECONDS));
        Ok(Self { uri })
    }

    /// Opens a connection, shown under `name` in RabbitMQ's management.
    pub(super) async fn connect(&self, name: &str) -> Result<Connection, String> {
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        match timeout(CONNECT_DEADLINE, Connection::connect_uri(self.uri.clone(), properties)).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(format!("cannot connect to {}: {error}", self.address())),
            Err(_) => Err(format!("{} did not answer within {CONNECT_DEADLINE:?}", self.address())),
        }
    }

    fn address(&self) -> String {
        format!("{}:{}", self.uri.authority.host, self.uri.authority.port)
    }
}

/// Closes a connection with the close handshake, if the broker answers in time.
pub(super) async fn close(connection: &Connection) {
    match timeout(CLOSE_DEADLINE, connection.close(REPLY_SUCCESS, "OK".into())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection was not closed cleanly"),
        Err(_) => tracing::debug!("broker did not confirm the close of the connection in time"),
    }
}
