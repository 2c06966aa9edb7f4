//! `assay console link`: an address that signs in to the console once.

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result};
use assay_agent_registry::keys::OrganizationName;

use super::registry_database;
use crate::cli::ConsoleCommand;
use crate::console_link::{base_address, sign_in_address};

pub async fn run(command: ConsoleCommand) -> Result<()> {
    let ConsoleCommand::Link { organization, url, location } = command;
    let organization = OrganizationName::parse(&organization).context("--organization")?;
    let (database, settings) = registry_database::open(&location).await?;
    let base = url.map_or_else(
        || base_address(&settings, settings.gateway.listen),
        |url| url.as_str().trim_end_matches('/').to_owned(),
    );
    writeln!(stdout(), "{}", sign_in_address(&database, organization, &base).await?)?;
    writeln!(stderr(), "it signs in once, within the hour; keep it secret")?;
    Ok(())
}
