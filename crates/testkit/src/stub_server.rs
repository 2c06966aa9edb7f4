//! The HTTP/1.1 server below the stubs: one request per connection, each on its own thread.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

/// A running server. Dropping it stops it; a connection ends with its handler.
pub struct StubServer {
    address: SocketAddr,
    is_stopped: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone)]
pub struct Request {
    /// Method, target and version.
    pub line: String,
    pub headers: HeaderMap,
    /// Its body, byte for byte.
    pub body: Vec<u8>,
}

impl StubServer {
    /// Starts a server on a free port. `handle` responds with [`respond`], or writes to the connection what it likes.
    ///
    /// # Errors
    /// When there is no free port.
    pub fn start(
        handle: impl Fn(Request, &mut TcpStream) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), handle)
    }

    /// Starts a server at this address.
    ///
    /// # Errors
    /// When the port is in use.
    pub fn start_at(
        address: SocketAddr,
        handle: impl Fn(Request, &mut TcpStream) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let listener =
            TcpListener::bind(address).with_context(|| format!("no stub can listen on {address}"))?;
        let address = listener.local_addr()?;
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (must_stop, handle) = (is_stopped.clone(), Arc::new(handle));
        let listener = thread::Builder::new().name("stub server".to_owned()).spawn(move || {
            for mut connection in listener.incoming().flatten() {
                if must_stop.load(Ordering::SeqCst) {
                    break;
                }
                let handle = handle.clone();
                thread::spawn(move || {
                    // Errors are expected: in many tests the client disconnects early.
                    drop(read_request(&connection).and_then(|request| handle(request, &mut connection)));
                });
            }
        })?;
        Ok(Self { address, is_stopped, listener: Some(listener) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for StubServer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees the flag.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }
}

/// Sends a response and asks the client to close the connection. The head is a status code with reason, optionally followed by
/// header lines.
///
/// # Errors
/// When the client has disconnected.
pub fn respond(connection: &mut TcpStream, head: &str, body: impl AsRef<[u8]>) -> Result<()> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    connection.write_all(&[head.as_bytes(), body].concat())?;
    Ok(())
}

/// Reads the request of a client (RFC 9112, sections 2 to 6; a body only with `Content-Length`).
fn read_request(connection: &TcpStream) -> Result<Request> {
    let mut reader = BufReader::new(connection);
    let mut lines = reader.by_ref().lines();
    let line = lines.next().context("the client has disconnected")??;
    let mut headers = HeaderMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.append(HeaderName::try_from(name)?, HeaderValue::from_str(value.trim())?);
    }
    let mut body = Vec::new();
    if let Some(length) = headers.get("content-length") {
        body.resize(length.to_str()?.parse()?, 0);
    }
    reader.read_exact(&mut body)?;
    Ok(Request { line, headers, body })
}
