//! Waits until the gateway is ready; the timeout error names the processes that are not.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, bail};

use super::{folder::StackFolder, gateway_address::GatewayAddress, supervisor::Supervisor};
use crate::{
    http,
    launcher::{ROLES, Settings},
};

/// Readiness endpoint of every role.
const PATH: &str = "/readyz";

/// Supervises until the gateway answers that it is ready.
///
/// # Errors
/// When it is not within `limit`; the message names every process that is not ready and its log.
pub(super) fn wait(
    supervisor: &mut Supervisor,
    folder: &StackFolder,
    settings: &Settings,
    gateway: GatewayAddress,
    limit: Duration,
) -> Result<()> {
    let address = gateway.reachable();
    if supervisor.wait_until(limit, |_| Ok(http::status_of(address, PATH) == Some(200)))? {
        return Ok(());
    }
    let mut failures = Vec::new();
    for role in ROLES {
        let address = settings.get(role.listen).context("every role has an address")?.parse()?;
        failures.extend(failure(supervisor, folder, role.name, address));
    }
    bail!("the stack is not ready after {} s:\n{}", limit.as_secs_f32(), failures.join("\n"))
}

/// Why a process is not ready; `None` when it is.
fn failure(supervisor: &Supervisor, folder: &StackFolder, name: &str, address: SocketAddr) -> Option<String> {
    let reason = match (supervisor.pid_of(name), http::status_of(address, PATH)) {
        (Some(_), Some(200)) => return None,
        (Some(pid), Some(status)) => format!("process {pid} answers {PATH} with {status}"),
        (Some(pid), None) => format!("process {pid} does not answer on {address}"),
        (None, _) => "does not stay alive".to_owned(),
    };
    Some(format!("  {name}: {reason}; read {}", folder.log(name).display()))
}
