//! Reads the name of the broker that listens on a port from the first frame of AMQP 0-9-1, which it sends before any login:
//! the port may belong to another broker.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    time::Duration,
};

/// The client's first bytes (AMQP 0-9-1, section 4.2.2).
const PROTOCOL_HEADER: &[u8] = b"AMQP\x00\x00\x09\x01";

/// A frame's type, channel and size (section 4.2.3).
const FRAME_HEADER: usize = 7;

/// `Connection.Start` is about 500 bytes; more than this is not one.
const MAX_FRAME: usize = 64 * 1024;

const TIMEOUT: Duration = Duration::from_secs(5);

/// The `Connection.Start` method of the broker on a loopback port, which holds its cluster's name. `None` without an
/// answer in AMQP.
pub(super) fn connection_start(port: u16) -> Option<Vec<u8>> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.write_all(PROTOCOL_HEADER).ok()?;
    let mut header = [0; FRAME_HEADER];
    stream.read_exact(&mut header).ok()?;
    let [1, 0, 0, size @ ..] = header else { return None };
    let size = usize::try_from(u32::from_be_bytes(size)).ok().filter(|size| *size <= MAX_FRAME)?;
    let mut method = vec![0; size];
    stream.read_exact(&mut method).ok()?;
    // Class connection (10), method start (10).
    method.starts_with(&[0, 10, 0, 10]).then_some(method)
}
