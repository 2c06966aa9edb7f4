//! Making connections, with a deadline.

use std::time::Duration;

use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties};
use tokio::time::timeout;

use crate::bus::BusError;

/// For TCP, TLS and the AMQP handshake together.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// For closing a connection in an orderly way, after which it is dropped.
const CLOSE_DEADLINE: Duration = Duration::from_secs(2);
/// A peer that is silent for twice as long is gone, unless the URL says otherwise.
const HEARTBEAT_SECONDS: u16 = 10;
/// Reply code of a normal close (AMQP 0-9-1, section 1.4.2.10, reply-success).
pub(super) const REPLY_SUCCESS: u16 = 200;

/// Knows the broker's address and credentials.
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

    /// A new connection that the broker's operator sees under `name`.
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

/// Ends a connection in an orderly way, if the broker is there to agree.
pub(super) async fn close(connection: &Connection) {
    match timeout(CLOSE_DEADLINE, connection.close(REPLY_SUCCESS, "OK".into())).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection was not closed in order"),
        Err(_) => tracing::debug!("broker did not agree to the end of the connection in time"),
    }
}
