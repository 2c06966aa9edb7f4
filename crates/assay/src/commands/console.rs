//! `assay console link`: creates a sign-in link for the console.

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result};
use assay_agent_registry::keys::OrganizationName;

use super::registry_database;
use crate::cli::ConsoleCommand;
use crate::console_link::{create_console_link, gateway_address};

pub async fn run(command: ConsoleCommand) -> Result<()> {
    let ConsoleCommand::Link { organization, url, location } = command;
    let organization = OrganizationName::parse(&organization).context("--organization")?;
    let (database, settings) = registry_database::open(&location).await?;
    let gateway = url.map_or_else(
        || gateway_address(&settings, settings.gateway.listen),
        |url| url.as_str().trim_end_matches('/').to_owned(),
    );
    writeln!(stdout(), "{}", create_console_link(&database, organization, &gateway).await?)?;
    writeln!(stderr(), "it signs in once, within the hour; keep it secret")?;
    Ok(())
}
