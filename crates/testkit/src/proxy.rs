//! A TCP proxy that injects network faults: it cuts, freezes or delays traffic. Spreads connections over several servers
//! as a load balancer does.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long a server may take to accept a connection before the next one is tried.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// A connection that ends after this long without an answer is reported.
const UNANSWERED: Duration = Duration::from_secs(30);

/// Simulated state of the network link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    #[default]
    Healthy,
    /// Closes all connections, new ones immediately.
    Cut,
    /// Holds back what clients send until the state changes; connections stay open.
    FrozenToServer,
    /// Holds back both directions until the state changes; connections stay open.
    Frozen,
    /// Delays every chunk.
    Slow(Duration),
}

/// A running proxy. Dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: watch::Sender<LinkState>,
    servers: watch::Sender<Vec<String>>,
    _acceptor: JoinSet<()>,
}

impl Proxy {
    /// Listens on a free loopback port and forwards connections to `server`, `HOST:PORT`.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn to(server: impl Into<String>) -> Result<Self> {
        Self::among(vec![server.into()]).await
    }

    /// The same for several servers: each connection goes to the next one that accepts it.
    ///
    /// # Errors
    /// When there is no free port.
    pub async fn among(servers: Vec<String>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (state, servers) = (watch::Sender::default(), watch::Sender::new(servers));
        let mut acceptor = JoinSet::new();
        acceptor.spawn(serve(listener, servers.subscribe(), state.subscribe()));
        Ok(Self { address, state, servers, _acceptor: acceptor })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards new connections to `server`, which has restarted on another port.
    pub fn set_target(&self, server: impl Into<String>) {
        self.servers.send_replace(vec![server.into()]);
    }

    /// Changes the state for all connections, open ones included.
    pub fn set(&self, state: LinkState) {
        self.state.send_replace(state);
    }

    /// Closes all connections and refuses new ones.
    pub fn cut(&self) {
        self.set(LinkState::Cut);
    }

    /// Forwards traffic again.
    pub fn heal(&self) {
        self.set(LinkState::Healthy);
    }
}

async fn serve(
    listener: TcpListener,
    servers: watch::Receiver<Vec<String>>,
    state: watch::Receiver<LinkState>,
) {
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        while connections.try_join_next().is_some() {}
        turn = turn.wrapping_add(1);
        if *state.borrow() != LinkState::Cut {
            connections.spawn(forward(client, servers.borrow().clone(), turn, state.clone()));
        }
    }
}

async fn forward(
    client: TcpStream,
    servers: Vec<String>,
    turn: usize,
    mut state: watch::Receiver<LinkState>,
) {
    let mut last_transfer = LastTransfer::new();
    let Some(server) = connect(&servers, turn).await else { return };
    last_transfer.server = server.peer_addr().ok();
    // Only the simulated delay, not Nagle's.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let upwards = pump(from_client, to_server, state.clone(), Direction::ToServer, &last_transfer);
    let downwards = pump(from_server, to_client, state.clone(), Direction::ToClient, &last_transfer);
    let passing = async { tokio::join!(upwards, downwards) };
    tokio::select! {
        _ = passing => {}
        _ = state.wait_for(|state| *state == LinkState::Cut) => {}
    }
}

async fn connect(servers: &[String], turn: usize) -> Option<TcpStream> {
    for offset in 0..servers.len() {
        let server = servers.get((turn.wrapping_add(offset)) % servers.len())?;
        if let Ok(Ok(connection)) = timeout(CONNECT_LIMIT, TcpStream::connect(server)).await {
            return Some(connection);
        }
    }
    None
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// Forwards one direction until its sender closes it, then closes the receiver.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut state: watch::Receiver<LinkState>,
    direction: Direction,
    last_transfer: &LastTransfer,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let is_frozen = move |state: &LinkState| match state {
            LinkState::Frozen => true,
            LinkState::FrozenToServer => direction == Direction::ToServer,
            LinkState::Healthy | LinkState::Cut | LinkState::Slow(_) => false,
        };
        let Ok(current_state) = state.wait_for(|state| !is_frozen(state)).await.map(|state| *state) else {
            return;
        };
        if let LinkState::Slow(delay) = current_state {
            sleep(delay).await;
        }
        if to.write_all(buffer.get(..read).unwrap_or_default()).await.is_err() {
            break;
        }
        last_transfer.set(direction);
    }
    let _ = to.shutdown().await;
}

/// When bytes of a connection were last forwarded, and in which direction. Reports a request without an answer when the
/// connection ends, to tell a server that did not answer from a client that did not ask.
struct LastTransfer {
    server: Option<SocketAddr>,
    began: Instant,
    last: Mutex<Option<(Direction, Instant)>>,
}

impl LastTransfer {
    fn new() -> Self {
        Self { server: None, began: Instant::now(), last: Mutex::new(None) }
    }

    fn set(&self, direction: Direction) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((direction, Instant::now()));
    }
}

impl Drop for LastTransfer {
    #[allow(clippy::print_stderr, reason = "explains a failed test")]
    fn drop(&mut self) {
        let last = *self.last.get_mut().unwrap_or_else(PoisonError::into_inner);
        let waiting_since = match last {
            None => self.began,
            Some((Direction::ToServer, at)) => at,
            Some((Direction::ToClient, _)) => return,
        };
        if waiting_since.elapsed() >= UNANSWERED {
            let (age, waited) = (self.began.elapsed().as_secs(), waiting_since.elapsed().as_secs());
            eprintln!(
                "proxy: a connection of {age} s to {:?} ended after {waited} s without an answer",
                self.server
            );
        }
    }
}
