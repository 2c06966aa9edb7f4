//! The address that signs in to the console once.

use std::net::{Ipv4Addr, SocketAddr};

use assay_agent_registry::console::{CreateSignInLinkError, create_sign_in_link};
use assay_agent_registry::keys::OrganizationName;
use assay_platform::db::Database;

use crate::settings::Settings;

/// Scheme and authority under which browsers find the gateway: the public ones, or those that it listens on.
pub fn base_address(settings: &Settings, listen: SocketAddr) -> String {
    if !settings.gateway.public_url.is_empty() {
        return settings.gateway.public_url.trim_end_matches('/').to_owned();
    }
    let is_any = listen.ip().is_unspecified();
    let address = if is_any { SocketAddr::from((Ipv4Addr::LOCALHOST, listen.port())) } else { listen };
    format!("http://{address}")
}

/// An address for one sign-in to the console of the organization, within the hour.
///
/// # Errors
/// [`CreateSignInLinkError`].
pub async fn sign_in_address(
    database: &Database,
    organization: OrganizationName,
    base: &str,
) -> Result<String, CreateSignInLinkError> {
    let token = create_sign_in_link(database, organization).await?;
    Ok(format!("{base}/console/sign-in?token={}", token.reveal()))
}
