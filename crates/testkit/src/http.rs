//! Readiness probe: one GET request.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// A service that does not respond within this time counts as not ready.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The status and the rest of the response to `GET path` (RFC 9112, section 4); `None` without an HTTP response in time.
pub(crate) fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (_version, rest) = response.strip_prefix("HTTP/1.")?.split_once(' ')?;
    Some((rest.get(..3)?.parse().ok()?, rest.to_owned()))
}

/// The status alone.
pub(crate) fn status_of(address: SocketAddr, path: &str) -> Option<u16> {
    get(address, path).map(|(status, _)| status)
}
