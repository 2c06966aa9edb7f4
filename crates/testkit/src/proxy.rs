//! A TCP proxy that makes the network misbehave: it cuts, freezes and delays what passes through, and spreads
//! connections over several servers as a load balancer does.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How long a server may take to accept a connection before the next one is tried.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// What the proxy does with what passes through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weather {
    /// Passes it on.
    #[default]
    Fair,
    /// Ends all connections, and every new one at once.
    Cut,
    /// Keeps what the clients send until the weather is another; connections stay open.
    FrozenToServer,
    /// Keeps what either side sends until the weather is another.
    Frozen,
    /// Passes everything on so much later.
    Slow(Duration),
}

/// A running proxy. Dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    servers: watch::Sender<Vec<String>>,
    _acceptor: JoinSet<()>,
}

impl Proxy {
    /// Listens on a free loopback port and passes connections on to `server`, `HOST:PORT`.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn to(server: impl Into<String>) -> Result<Self> {
        Self::among(vec![server.into()]).await
    }

    /// The same for several servers: each connection goes to the next one that accepts it.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn among(servers: Vec<String>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (weather, servers) = (watch::Sender::default(), watch::Sender::new(servers));
        let mut acceptor = JoinSet::new();
        acceptor.spawn(serve(listener, servers.subscribe(), weather.subscribe()));
        Ok(Self { address, weather, servers, _acceptor: acceptor })
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on new connections go to `server`: it came back elsewhere.
    pub fn aim(&self, server: impl Into<String>) {
        self.servers.send_replace(vec![server.into()]);
    }

    /// Changes the weather for all connections, those under way included.
    pub fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Ends all connections and refuses new ones.
    pub fn cut(&self) {
        self.set(Weather::Cut);
    }

    /// Back to fair weather.
    pub fn heal(&self) {
        self.set(Weather::Fair);
    }
}

async fn serve(
    listener: TcpListener,
    servers: watch::Receiver<Vec<String>>,
    weather: watch::Receiver<Weather>,
) {
    let mut connections = JoinSet::new();
    let mut turn = 0_usize;
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        while connections.try_join_next().is_some() {}
        turn = turn.wrapping_add(1);
        if *weather.borrow() != Weather::Cut {
            connections.spawn(pass_on(client, servers.borrow().clone(), turn, weather.clone()));
        }
    }
}

async fn pass_on(
    client: TcpStream,
    servers: Vec<String>,
    turn: usize,
    mut weather: watch::Receiver<Weather>,
) {
    let Some(server) = connect(&servers, turn).await else { return };
    // Delays are the weather's, not Nagle's.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let upwards = pump(from_client, to_server, weather.clone(), Direction::ToServer);
    let downwards = pump(from_server, to_client, weather.clone(), Direction::ToClient);
    let passing = async { tokio::join!(upwards, downwards) };
    tokio::select! {
        _ = passing => {}
        _ = weather.wait_for(|weather| *weather == Weather::Cut) => {}
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToServer,
    ToClient,
}

/// Passes one direction on until its sender ends it; then the receiver is told so.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    direction: Direction,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let is_frozen = move |weather: &Weather| match weather {
            Weather::Frozen => true,
            Weather::FrozenToServer => direction == Direction::ToServer,
            Weather::Fair | Weather::Cut | Weather::Slow(_) => false,
        };
        let Ok(now) = weather.wait_for(|weather| !is_frozen(weather)).await.map(|weather| *weather) else {
            return;
        };
        if let Weather::Slow(delay) = now {
            sleep(delay).await;
        }
        if to.write_all(buffer.get(..read).unwrap_or_default()).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
