//! Free loopback ports for servers that are restarted on the same port after a crash.

use std::{
    collections::BTreeSet,
    fs,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    sync::Mutex,
};

use anyhow::{Context as _, Result};
use assay_platform::runtime::LockExt as _;

/// The lowest port returned; the well-known ones are lower.
const LOWEST_PORT: u16 = 20_000;

/// How many random candidates are tried, and then how often the kernel is asked to choose.
const ATTEMPTS: usize = 50;

/// How many ports a server tries to start on: another process may take a chosen port before the server does.
pub(crate) const MAX_PORTS_TRIED: usize = 3;

/// Ports returned so far, so that none is returned twice before it is bound.
static HANDED_OUT: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A TCP port of 127.0.0.1 on which nothing listens, never the same one twice within this process.
///
/// Where possible it lies outside the kernel's ephemeral port range: an outgoing connection of any process could
/// otherwise take the port while a killed server restarts.
///
/// # Errors
/// When no port can be bound at all.
pub fn free_port() -> Result<u16> {
    let candidates = range_below_ephemeral();
    let mut handed_out = HANDED_OUT.locked();
    for attempt in 0..2 * ATTEMPTS {
        let candidate = match &candidates {
            Some(range) if attempt < ATTEMPTS => {
                // Not exactly uniform, which does not matter for a port.
                let random = getrandom::u32().context("the system gives no random bytes")?;
                range.start + u16::try_from(random % u32::from(range.end - range.start))?
            }
            // The kernel chooses.
            _ => 0,
        };
        let Some(port) = bind(candidate) else { continue };
        if handed_out.insert(port) {
            return Ok(port);
        }
    }
    anyhow::bail!("found no free port on 127.0.0.1: see what listens there with `ss -ltn`")
}

/// The ports between the well-known ones and the kernel's ephemeral range.
fn range_below_ephemeral() -> Option<Range<u16>> {
    let outgoing = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let first_outgoing: u16 = outgoing.split_whitespace().next()?.parse().ok()?;
    (first_outgoing > LOWEST_PORT + 1000).then_some(LOWEST_PORT..first_outgoing)
}

/// The port, or a free one for port 0; `None` when it is in use.
fn bind(port: u16) -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
    Some(listener.local_addr().ok()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_are_unique() {
        let ports: BTreeSet<u16> = (0..200).map(|_| free_port().unwrap()).collect();
        assert_eq!(ports.len(), 200);
    }

    #[test]
    fn free_port_can_be_bound() {
        let port = free_port().unwrap();
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    }

    #[test]
    fn port_in_use_is_detected() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert_eq!(bind(listener.local_addr().unwrap().port()), None);
    }
}
