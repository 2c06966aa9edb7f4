//! Sign-in links for the console.

use std::net::{Ipv4Addr, SocketAddr};

use assay_agent_registry::console::{CreateSignInTokenError, create_sign_in_token};
use assay_agent_registry::keys::OrganizationName;
use assay_platform::db::Database;

use crate::settings::Settings;

/// The gateway's address in browsers, without a trailing slash: `gateway.public_url`, or the one that it listens on.
pub fn gateway_address(settings: &Settings, listen: SocketAddr) -> String {
    if !settings.gateway.public_url.is_empty() {
        return settings.gateway.public_url.trim_end_matches('/').to_owned();
    }
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port()));
    let address = if listen.ip().is_unspecified() { loopback } else { listen };
    format!("http://{address}")
}

/// Creates a link for one sign-in to the console of the organization, within the hour. `gateway_url` has no trailing slash.
///
/// # Errors
/// [`CreateSignInTokenError`].
pub async fn create_console_link(
    database: &Database,
    organization: OrganizationName,
    gateway_url: &str,
) -> Result<String, CreateSignInTokenError> {
    let token = create_sign_in_token(database, organization).await?;
    Ok(format!("{gateway_url}/console/sign-in?token={}", token.reveal()))
}
