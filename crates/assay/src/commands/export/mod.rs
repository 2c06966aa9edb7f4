//! `assay export --kind …`: creates an export, waits for it and downloads its file. The file gets its name only when it
//! is complete and verified.

mod download;
mod rows;
mod sink;
mod wait;

use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use assay_contracts::export::{Export, ExportFilters, ExportKind};
use assay_contracts::time::Timestamp;
use assay_platform::runtime::random_bytes;
use reqwest::Method;
use serde_json::json;

use self::download::{Verification, download};
use self::sink::Sink;
use crate::api::{Api, Call, INTERACTIVE_ATTEMPTS};
use crate::cli::ExportArguments;
use crate::exit::{INTERRUPTED, TIMED_OUT, WrongUsage};
use crate::signals::StopSignals;

const EXPORTS_PATH: &str = "/v1/evaluations/exports";

pub async fn run(arguments: ExportArguments) -> Result<ExitCode> {
    if let (Some(from), Some(to)) = (arguments.from, arguments.to)
        && from > to
    {
        return Err(WrongUsage::new(format!("--from {from} lies behind --to {to}: exchange them")).into());
    }
    let api = Api::new(&arguments.service, INTERACTIVE_ATTEMPTS)?;
    // Before the export is created, so that a mistake such as an existing file has no effect.
    let out = arguments.out.clone().unwrap_or_else(|| default_name(&arguments));
    sink::ensure_writable(&out, arguments.force)?;
    let mut stop = StopSignals::listen()?;
    // Set by `fetch`, so that an interruption can print how to resume.
    let id = std::cell::OnceCell::new();
    tokio::select! {
        code = fetch(&api, &arguments, &out, &id) => code,
        () = stop.next() => {
            let state = if out == Path::new("-") { "the output is incomplete" } else { "nothing was written" };
            writeln!(stderr(), "interrupted: {state}{}", resume_hint(id.get(), &out))?;
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

async fn fetch(
    api: &Api,
    arguments: &ExportArguments,
    out: &Path,
    id: &std::cell::OnceCell<String>,
) -> Result<ExitCode> {
    let id = match (&arguments.id, arguments.kind) {
        (Some(known), _) => id.get_or_init(|| known.clone()),
        (None, Some(kind)) => {
            let filters =
                ExportFilters { from: arguments.from, to: arguments.to, ..ExportFilters::default() };
            let created = create_export(api, kind, filters).await?;
            id.get_or_init(|| created.id.to_string())
        }
        (None, None) => {
            return Err(
                WrongUsage::new("say what is exported: --kind axis or --kind resolution_audit").into()
            );
        }
    };
    let Some(export) = wait::until_complete(api, id, Duration::from_secs(arguments.timeout)).await? else {
        let seconds = arguments.timeout;
        writeln!(stderr(), "not complete after {seconds} s{}", resume_hint(Some(id), out))?;
        return Ok(ExitCode::from(TIMED_OUT));
    };
    let sink = Sink::open(out, arguments.force)?;
    let (written, verification) = download(api, &export, sink).await?;
    let verification = match verification {
        Verification::Sha256 => "length and SHA-256 verified",
        Verification::LengthOnly => "not verified: no checksum was given for it",
    };
    let rows = match written.rows {
        0 => "no conversations in this range: only the header".to_owned(),
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    };
    let name = if out == Path::new("-") { "standard output".to_owned() } else { out.display().to_string() };
    writeln!(stderr(), "{rows}, {} bytes, {verification}: {name}", written.bytes)?;
    if let Some(warning) = missing_rows_warning(&export) {
        writeln!(stderr(), "warning: {warning}")?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn create_export(api: &Api, kind: ExportKind, filters: ExportFilters) -> Result<Export> {
    let key = hex::encode(random_bytes::<16>()?);
    let body = json!({"kind": kind, "format": "csv", "filters": filters});
    let call = Call {
        method: Method::POST,
        path: EXPORTS_PATH,
        body: Some(body.to_string().into_bytes()),
        idempotency_key: Some(&format!("assay-export-{key}")),
    };
    api.send_for_json(&call).await
}

/// A warning when rows may be missing. `None` for a complete file, or when an older service does not tell.
fn missing_rows_warning(export: &Export) -> Option<String> {
    if export.evaluations_complete != Some(false) {
        return None;
    }
    let cause = match export.missing_evaluations {
        Some(1) => {
            "1 evaluation had not arrived when the file was written, and its row may be missing".to_owned()
        }
        Some(count) => {
            format!(
                "{count} evaluations had not arrived when the file was written, and their rows may be missing"
            )
        }
        None => "the service could not tell whether all evaluations are in the file".to_owned(),
    };
    Some(format!("{cause}: export again later, and compare the numbers of rows"))
}

/// How to fetch an export that the service continues without this command.
fn resume_hint(id: Option<&String>, out: &Path) -> String {
    let Some(id) = id else { return String::new() };
    format!("; the service goes on with it: `assay export --id {id} --out {}` fetches it", out.display())
}

/// `assay-axis-2026-01-01-2026-02-01.csv`.
fn default_name(arguments: &ExportArguments) -> PathBuf {
    let what = match (&arguments.id, arguments.kind) {
        (Some(id), _) => id.as_str(),
        (None, Some(kind)) => kind.as_str(),
        (None, None) => "export",
    };
    let period = [arguments.from, arguments.to].into_iter().flatten();
    let period: String = period.map(|moment| format!("-{}", file_name_time(moment))).collect();
    // The id is user input: no part of it may act as a path.
    let what: String = what.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    PathBuf::from(format!("assay-{what}{period}.csv"))
}

/// The day, with the time unless it is midnight; without colons, which some file systems refuse.
fn file_name_time(moment: Timestamp) -> String {
    let text = moment.to_string();
    let (day, time) = text.split_once('T').unwrap_or((&text, ""));
    if time == "00:00:00.000Z" {
        return day.to_owned();
    }
    format!("{day}T{}Z", time.trim_end_matches(".000Z").trim_end_matches('Z').replace(':', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_evaluations_are_a_warning() {
        let export = |complete: Option<bool>, missing: Option<u64>| {
            let export = json!({
                "id": "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a15", "kind": "axis", "format": "csv", "status": "complete",
                "filters": {}, "created_at": 1, "updated_at": 2, "evaluations_complete": complete,
                "missing_evaluations": missing,
            });
            serde_json::from_value::<Export>(export).unwrap()
        };
        assert_eq!(missing_rows_warning(&export(Some(true), Some(0))), None);
        assert_eq!(missing_rows_warning(&export(None, None)), None);
        for (missing, text) in
            [(Some(1), "1 evaluation had"), (Some(7), "7 evaluations had"), (None, "could not tell whether")]
        {
            let warning = missing_rows_warning(&export(Some(false), missing)).unwrap();
            assert!(warning.contains(text), "{warning}");
        }
    }

    #[test]
    fn file_name_omits_midnight() {
        let cases = [
            ("2026-01-01", "2026-01-01"),
            ("2026-01-01T09:30:00Z", "2026-01-01T093000Z"),
            ("2026-01-01T09:30:00.250Z", "2026-01-01T093000.250Z"),
        ];
        for (moment, name) in cases {
            assert_eq!(file_name_time(Timestamp::parse(moment).unwrap()), name);
        }
    }
}
