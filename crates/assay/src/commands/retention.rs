//! `assay retention`: sets and shows retention periods of organizations.

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result, bail};
use assay_agent_registry::keys::OrganizationName;
use assay_agent_registry::retention::{self, OverrideChange, RetentionChange, RetentionRecord};
use assay_contracts::retention::RetentionPeriod;

use super::registry_database;
use crate::cli::RetentionCommand;
use crate::settings::Settings;

/// Resets a period to the installation's default.
const DEFAULT: &str = "default";

pub async fn run(command: RetentionCommand) -> Result<()> {
    match command {
        RetentionCommand::Set { organization, transcripts_days, evaluations_days, files_days, location } => {
            let change = RetentionChange {
                transcripts: parse_change(transcripts_days.as_deref()).context("--transcripts-days")?,
                evaluations: parse_change(evaluations_days.as_deref()).context("--evaluations-days")?,
                files: parse_change(files_days.as_deref()).context("--files-days")?,
            };
            let name = OrganizationName::parse(&organization).context("--organization")?;
            let (database, settings) = registry_database::open(&location).await?;
            let Some(record) = retention::set(&database, name, change).await? else {
                bail!(unknown_organization(&organization));
            };
            show(&[record], &settings)?;
            writeln!(stderr(), "set; the services follow within the hour")?;
            Ok(())
        }
        RetentionCommand::Show { organization, location } => {
            let name = organization.as_deref().map(OrganizationName::parse).transpose();
            let (database, settings) = registry_database::open(&location).await?;
            let records = retention::list(&database, name.context("--organization")?).await?;
            if let (Some(organization), []) = (organization, records.as_slice()) {
                bail!(unknown_organization(&organization));
            }
            show(&records, &settings)
        }
    }
}

fn parse_change(text: Option<&str>) -> Result<OverrideChange> {
    Ok(match text {
        None => OverrideChange::Keep,
        Some(DEFAULT) => OverrideChange::Set(None),
        Some(text) => {
            let period =
                text.parse::<RetentionPeriod>().context("or give `default` for that of the installation")?;
            OverrideChange::Set(Some(period))
        }
    })
}

fn show(records: &[RetentionRecord], settings: &Settings) -> Result<()> {
    let defaults = settings.registry.default_retention().context("registry")?;
    let default_files =
        settings.export_worker.file_retention().context("export_worker.file_retention_days")?;
    let mut output = stdout();
    writeln!(output, "{:11}  {:11}  {:11}  ORGANIZATION", "TRANSCRIPTS", "EVALUATIONS", "FILES")?;
    let mut with_short_evaluations = Vec::new();
    for RetentionRecord { organization, overrides, .. } in records {
        let transcript_period = overrides.transcripts.unwrap_or(defaults.transcripts);
        if overrides.evaluations.unwrap_or(defaults.evaluations).is_shorter_than(transcript_period) {
            with_short_evaluations.push(organization);
        }
        let transcripts = or_default(overrides.transcripts, defaults.transcripts);
        let evaluations = or_default(overrides.evaluations, defaults.evaluations);
        let files = or_default(overrides.files, default_files);
        writeln!(output, "{transcripts:11}  {evaluations:11}  {files:11}  {organization}")?;
    }
    for organization in with_short_evaluations {
        writeln!(
            stderr(),
            "warning: `{organization}` keeps evaluations for a shorter time than transcripts: a ticket whose evaluation was removed \
             reads `pending`"
        )?;
    }
    Ok(())
}

/// A default period is in parentheses.
fn or_default(override_period: Option<RetentionPeriod>, default: RetentionPeriod) -> String {
    override_period.map_or_else(|| format!("({default})"), |period| period.to_string())
}

fn unknown_organization(organization: &str) -> String {
    format!("there is no organization `{organization}`; `assay retention show` lists all of them")
}
