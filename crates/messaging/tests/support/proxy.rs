//! A TCP proxy that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Passes connections on to a server for as long as it is open.
pub struct Proxy {
    address: SocketAddr,
    open: Arc<watch::Sender<bool>>,
    _tasks: JoinSet<()>,
}

impl Proxy {
    /// Listens on a free port of its own.
    pub async fn to(server: String) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let open = Arc::new(watch::Sender::new(true));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, server, open.subscribe()));
        Ok(Self { address, open, _tasks: tasks })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and refuses new ones.
    pub fn cut(&self) {
        self.open.send_replace(false);
    }

    pub fn heal(&self) {
        self.open.send_replace(true);
    }
}

async fn serve(listener: TcpListener, server: String, open: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { return };
        if *open.borrow() {
            connections.spawn(pass_on(client, server.clone(), open.clone()));
        }
    }
}

async fn pass_on(mut client: TcpStream, server: String, mut open: watch::Receiver<bool>) {
    let Ok(mut upstream) = TcpStream::connect(&server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut upstream) => {}
        _ = open.wait_for(|open| !open) => {}
    }
}
