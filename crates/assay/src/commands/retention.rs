//! `assay retention`: how long organizations keep things.

use std::io::{Write, stderr, stdout};

use anyhow::{Context, Result, bail};
use assay_agent_registry::keys::OrganizationName;
use assay_agent_registry::retention::{self, DefaultPeriods, PeriodChange, RetentionChange, RetentionRecord};
use assay_contracts::retention::Period;

use super::registry_place;
use crate::cli::RetentionCommand;
use crate::settings::Settings;

/// Gives a period back to the installation.
const DEFAULT: &str = "default";

pub async fn run(command: RetentionCommand) -> Result<()> {
    match command {
        RetentionCommand::Set { organization, transcripts_days, evaluations_days, files_days, place } => {
            let change = RetentionChange {
                transcripts: parse(transcripts_days.as_deref()).context("--transcripts-days")?,
                evaluations: parse(evaluations_days.as_deref()).context("--evaluations-days")?,
                files: parse(files_days.as_deref()).context("--files-days")?,
            };
            let name = OrganizationName::parse(&organization).context("--organization")?;
            let (database, settings) = registry_place::open(&place).await?;
            let Some(record) = retention::set(&database, name, change).await? else {
                bail!(unknown(&organization));
            };
            show(&[record], &settings)?;
            writeln!(stderr(), "set; the services follow within the hour")?;
            Ok(())
        }
        RetentionCommand::Show { organization, place } => {
            let name = organization.as_deref().map(OrganizationName::parse).transpose();
            let (database, settings) = registry_place::open(&place).await?;
            let records = retention::list(&database, name.context("--organization")?).await?;
            if let (Some(organization), []) = (organization, records.as_slice()) {
                bail!(unknown(&organization));
            }
            show(&records, &settings)
        }
    }
}

fn parse(text: Option<&str>) -> Result<PeriodChange> {
    Ok(match text {
        None => PeriodChange::Keep,
        Some(DEFAULT) => PeriodChange::Set(None),
        Some(text) => {
            let period = text.parse::<Period>().context("or give `default` for that of the installation")?;
            PeriodChange::Set(Some(period))
        }
    })
}

fn show(records: &[RetentionRecord], settings: &Settings) -> Result<()> {
    let DefaultPeriods { transcripts, evaluations } =
        settings.registry.default_periods().context("registry")?;
    let files = settings.export_worker.file_retention().context("export_worker.file_retention_days")?;
    let mut output = stdout();
    writeln!(output, "{:11}  {:11}  {:11}  ORGANIZATION", "TRANSCRIPTS", "EVALUATIONS", "FILES")?;
    for RetentionRecord { organization, own, .. } in records {
        let transcripts = shown(own.transcripts, transcripts);
        let evaluations = shown(own.evaluations, evaluations);
        let files = shown(own.files, files);
        writeln!(output, "{transcripts:11}  {evaluations:11}  {files:11}  {organization}")?;
    }
    Ok(())
}

fn shown(own: Option<Period>, default: Period) -> String {
    own.map_or_else(|| format!("({default})"), |period| period.to_string())
}

fn unknown(organization: &str) -> String {
    format!("there is no organization `{organization}`; `assay retention show` lists all of them")
}
