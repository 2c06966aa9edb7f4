//! `assay keys`: an operator's work on the registry's database, without HTTP.

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result, bail};
use assay_agent_registry::keys::{self, KeyName, KeyRecord, NewKey, OrganizationName, Revocation};
use assay_contracts::tenant::{Scope, Scopes};
use assay_contracts::time::Timestamp;
use assay_platform::db::Database;
use assay_platform::runtime::now;

use super::registry_place;
use crate::cli::KeysCommand;

const DAY_MILLIS: i64 = 24 * 60 * 60 * 1000;

pub async fn run(command: KeysCommand) -> Result<()> {
    match command {
        KeysCommand::Create { organization, name, scopes, expires_in_days, place } => {
            let new = NewKey {
                organization: OrganizationName::parse(&organization).context("--organization")?,
                name: KeyName::parse(&name).context("--name")?,
                scopes: parse_scopes(&scopes)?,
                expires_at: expires_in_days.map(|days| now().plus_millis(i64::from(days) * DAY_MILLIS)),
            };
            create(registry_place::open(&place).await?.0, new).await
        }
        KeysCommand::List { organization, place } => {
            let organization = organization
                .map(|name| OrganizationName::parse(&name))
                .transpose()
                .context("--organization")?;
            list(registry_place::open(&place).await?.0, organization).await
        }
        KeysCommand::Revoke { id, place } => revoke(registry_place::open(&place).await?.0, &id).await,
    }
}

async fn create(database: Database, new: NewKey) -> Result<()> {
    let created = keys::create(&database, new).await?;
    writeln!(stdout(), "{}", created.key.reveal())?;
    writeln!(stderr(), "created key {}; it is not shown again", created.id)?;
    Ok(())
}

async fn list(database: Database, organization: Option<OrganizationName>) -> Result<()> {
    let records = keys::list(&database, organization).await?;
    let mut output = stdout();
    writeln!(
        output,
        "{:36}  {:20}  {:24}  {:24}  {:32}  NAME",
        "ID", "ORGANIZATION", "LAST USED", "STATE", "SCOPES"
    )?;
    for record in &records {
        let last_used = record.last_used_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        writeln!(
            output,
            "{:36}  {:20}  {:24}  {:24}  {:32}  {}",
            record.id.to_string(),
            record.organization,
            last_used,
            state(record, now()),
            record.scopes.to_string(),
            record.name
        )?;
    }
    if records.len() as i64 >= keys::MAX_LISTED_KEYS {
        writeln!(stderr(), "only the newest {} keys are listed: give --organization", keys::MAX_LISTED_KEYS)?;
    }
    Ok(())
}

async fn revoke(database: Database, id: &str) -> Result<()> {
    let key_id = id.parse().with_context(|| format!("`{id}`; `assay keys list` shows the ids"))?;
    match keys::revoke(&database, key_id).await? {
        Revocation::Revoked => writeln!(stderr(), "revoked; gateways may accept it for half a minute more")?,
        Revocation::AlreadyRevoked(at) => writeln!(stderr(), "was revoked at {at}")?,
        Revocation::Unknown => bail!("there is no key with the id {id}; `assay keys list` shows the ids"),
    }
    Ok(())
}

fn state(record: &KeyRecord, now: Timestamp) -> String {
    match (record.revoked_at, record.expires_at) {
        (Some(_), _) => "revoked".to_owned(),
        (None, Some(at)) if at <= now => "expired".to_owned(),
        (None, Some(at)) => format!("until {at}"),
        (None, None) => "active".to_owned(),
    }
}

fn parse_scopes(names: &[String]) -> Result<Scopes> {
    if names.is_empty() {
        return Ok(Scopes::default_for_keys());
    }
    let scopes: Result<Vec<Scope>, _> = names.iter().map(|name| name.trim().parse()).collect();
    Ok(Scopes::from_iter(scopes.context("--scopes")?))
}
