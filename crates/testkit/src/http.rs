//! Readiness probe: the status of one GET request.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

/// A service that does not respond within this time counts as not ready.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The status of `GET path` (RFC 9112, section 4); `None` when nothing answers in HTTP within two seconds.
pub(crate) fn status_of(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut status_line = [0; 12];
    stream.read_exact(&mut status_line).ok()?;
    let (version, code) = status_line.split_at(9);
    if !version.starts_with(b"HTTP/1.") {
        return None;
    }
    std::str::from_utf8(code).ok()?.parse().ok()
}
