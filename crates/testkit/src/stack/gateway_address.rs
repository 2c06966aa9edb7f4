//! The gateway's address: the only one that the caller chooses, so it may be in use.

use std::{
    io::ErrorKind,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs as _},
};

use anyhow::{Context as _, Result, bail};

use super::settings::GATEWAY_LISTEN;
use crate::ports::free_port;

/// Where the gateway listens and where it can be reached from this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GatewayAddress {
    listen: SocketAddr,
}

impl GatewayAddress {
    /// Parses `HOST:PORT`, replaces port 0 by a free one, and checks that the address is free.
    pub(super) fn resolve(text: &str) -> Result<Self> {
        let addresses = text.to_socket_addrs();
        let addresses =
            addresses.with_context(|| format!("{GATEWAY_LISTEN}={text} is not HOST:PORT: correct it"))?;
        let mut listen = addresses.into_iter().next().with_context(|| format!("{text} has no address"))?;
        if listen.port() == 0 {
            listen.set_port(free_port()?);
        }
        match TcpListener::bind(listen) {
            Ok(_released_at_once) => Ok(Self { listen }),
            Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
                "another program listens on {listen}, where the gateway should: stop it, or choose another address \
                 with {GATEWAY_LISTEN}=127.0.0.1:PORT"
            ),
            Err(error) => Err(error).with_context(|| format!("the gateway cannot listen on {listen}")),
        }
    }

    /// The address the gateway listens on.
    pub(super) fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The address to connect to from this machine: loopback for the wildcard address.
    pub(super) fn reachable(&self) -> SocketAddr {
        let host = match self.listen.ip() {
            IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            address => address,
        };
        SocketAddr::new(host, self.listen.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_becomes_a_free_port() {
        assert_ne!(GatewayAddress::resolve("127.0.0.1:0").unwrap().listen().port(), 0);
    }

    #[test]
    fn wildcard_address_is_reached_on_loopback() {
        let address = GatewayAddress::resolve("0.0.0.0:0").unwrap();
        assert_eq!(address.reachable().ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn invalid_address_is_refused() {
        for text in ["", "8080", "127.0.0.1", "127.0.0.1:99999"] {
            assert!(GatewayAddress::resolve(text).is_err(), "{text}");
        }
    }
}
