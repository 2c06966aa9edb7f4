//! `assay keys`: manages API keys in the registry's database directly, without HTTP.

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result, bail};
use assay_agent_registry::keys::{self, CreateKey, KeyName, KeyRecord, OrganizationName, Revocation};
use assay_contracts::tenant::{Scope, Scopes};
use assay_contracts::time::{DAY_MILLIS, Timestamp};
use assay_platform::db::Database;
use assay_platform::runtime::now;
use serde_json::{Value, json};

use super::registry_database;
use crate::cli::KeysCommand;
use crate::terminal::one_line;

pub async fn run(command: KeysCommand) -> Result<()> {
    match command {
        KeysCommand::Create { organization, name, scopes, expires_in_days, location } => {
            let new_key = CreateKey {
                organization: OrganizationName::parse(&organization).context("--organization")?,
                name: KeyName::parse(&name).context("--name")?,
                scopes: parse_scopes(&scopes)?,
                expires_at: expires_in_days.map(|days| now().plus_millis(i64::from(days) * DAY_MILLIS)),
            };
            create(registry_database::open(&location).await?.0, new_key).await
        }
        KeysCommand::List { organization, json, location } => {
            let organization = organization
                .map(|name| OrganizationName::parse(&name))
                .transpose()
                .context("--organization")?;
            list(registry_database::open(&location).await?.0, organization, json).await
        }
        KeysCommand::Revoke { id, location } => {
            revoke(registry_database::open(&location).await?.0, &id).await
        }
    }
}

async fn create(database: Database, new_key: CreateKey) -> Result<()> {
    let created = keys::create(&database, new_key).await?;
    writeln!(stdout(), "{}", created.key.reveal())?;
    writeln!(stderr(), "created the key with the id {}; the key itself is not shown again", created.id)?;
    Ok(())
}

async fn list(database: Database, organization: Option<OrganizationName>, json: bool) -> Result<()> {
    let is_filtered = organization.is_some();
    let records = keys::list(&database, organization).await?;
    let now = now();
    let text = if json { as_json(&records, now)? } else { as_table(&records, now) };
    stdout().write_all(text.as_bytes())?;
    if records.len() as i64 >= keys::MAX_LISTED_KEYS {
        let advice = if is_filtered { "" } else { ": give --organization" };
        writeln!(stderr(), "at most the newest {} keys are listed{advice}", keys::MAX_LISTED_KEYS)?;
    }
    Ok(())
}

fn as_table(records: &[KeyRecord], now: Timestamp) -> String {
    let line = |[id, organization, last_used, state, scopes, name]: [&str; 6]| {
        format!("{id:36}  {organization:20}  {last_used:24}  {state:30}  {scopes:32}  {name}\n")
    };
    let mut text = line(["ID", "ORGANIZATION", "LAST USED", "STATE", "SCOPES", "NAME"]);
    for record in records {
        let last_used = record.last_used_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        let (id, scopes) = (record.id.to_string(), record.scopes.to_string());
        let (organization, name) = (one_line(&record.organization), one_line(&record.name));
        text.push_str(&line([&id, &organization, &last_used, &state_text(record, now), &scopes, &name]));
    }
    text
}

fn as_json(records: &[KeyRecord], now: Timestamp) -> Result<String> {
    let keys: Vec<Value> = records
        .iter()
        .map(|record| {
            json!({
                "id": record.id,
                "organization": record.organization,
                "name": record.name,
                "scopes": record.scopes.to_string().split(' ').collect::<Vec<_>>(),
                "state": state(record, now),
                "created_at": record.created_at,
                "last_used_at": record.last_used_at,
                "expires_at": record.expires_at,
                "revoked_at": record.revoked_at,
            })
        })
        .collect();
    Ok(serde_json::to_string_pretty(&keys)? + "\n")
}

async fn revoke(database: Database, id: &str) -> Result<()> {
    let key_id = id.parse().with_context(|| format!("`{id}`; `assay keys list` shows the ids"))?;
    match keys::revoke(&database, key_id).await? {
        Revocation::Revoked => writeln!(
            stderr(),
            "revoked; gateways may accept it for half a minute more, or a minute while agent-registry does not answer"
        )?,
        Revocation::AlreadyRevoked(at) => writeln!(stderr(), "was revoked at {at}")?,
        Revocation::Unknown => bail!("there is no key with the id {id}; `assay keys list` shows the ids"),
    }
    Ok(())
}

/// `active`, `expired` or `revoked`.
fn state(record: &KeyRecord, now: Timestamp) -> &'static str {
    match (record.revoked_at, record.expires_at) {
        (Some(_), _) => "revoked",
        (None, Some(at)) if at <= now => "expired",
        (None, _) => "active",
    }
}

/// The state for the table, with the expiry of an active key.
fn state_text(record: &KeyRecord, now: Timestamp) -> String {
    match (state(record, now), record.expires_at) {
        ("active", Some(at)) => format!("until {at}"),
        (state, _) => state.to_owned(),
    }
}

fn parse_scopes(names: &[String]) -> Result<Scopes> {
    if names.is_empty() {
        return Ok(Scopes::default_for_keys());
    }
    let scopes: Result<Vec<Scope>, _> = names.iter().map(|name| name.trim().parse()).collect();
    Ok(Scopes::from_iter(scopes.context("--scopes")?))
}
