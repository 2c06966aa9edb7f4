//! `assay export --kind …`: creates an export, waits for it, and fetches its file: whole, checked, and under its name only
//! when it is.

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

use self::download::{Checked, download};
use self::sink::Sink;
use self::wait::wait;
use super::{INTERRUPTED, NOT_IN_TIME, WrongUsage};
use crate::api::{ATTEMPTS, Api, Call};
use crate::cli::ExportArguments;
use crate::signals::StopSignals;

const EXPORTS: &str = "/v1/evaluations/exports";

/// Fetches a file; 0 when it is there and checked.
pub async fn run(arguments: ExportArguments) -> Result<ExitCode> {
    if let (Some(from), Some(to)) = (arguments.from, arguments.to)
        && from > to
    {
        return Err(WrongUsage::new(format!("--from {from} lies behind --to {to}: exchange them")).into());
    }
    let api = Api::new(&arguments.service, ATTEMPTS)?;
    // Before anything is created: a file that is in the way is the likeliest mistake.
    let out = arguments.out.clone().unwrap_or_else(|| default_name(&arguments));
    sink::check(&out, arguments.force)?;
    let mut stop = StopSignals::listen()?;
    let id = std::cell::OnceCell::new();
    tokio::select! {
        code = fetch(&api, &arguments, &out, &id) => code,
        () = stop.next() => {
            let state = if out == Path::new("-") { "what was printed is not whole" } else { "nothing was written" };
            writeln!(stderr(), "interrupted: {state}{}", later(id.get(), &out))?;
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
            let created = create(api, kind, ExportFilters { from: arguments.from, to: arguments.to }).await?;
            id.get_or_init(|| created.id.to_string())
        }
        (None, None) => {
            return Err(
                WrongUsage::new("say what is exported: --kind axis or --kind resolution_audit").into()
            );
        }
    };
    let Some(export) = wait(api, id, Duration::from_secs(arguments.timeout)).await? else {
        let seconds = arguments.timeout;
        writeln!(stderr(), "not complete after {seconds} s{}", later(Some(id), out))?;
        return Ok(ExitCode::from(NOT_IN_TIME));
    };
    let sink = Sink::open(out, arguments.force)?;
    let (receipt, checked) = download(api, &export, sink).await?;
    let checked = match checked {
        Checked::Sha256 => "length and SHA-256 verified",
        Checked::LengthOnly => "not verified: no checksum was given for it",
    };
    let rows = match receipt.rows {
        0 => "no conversations in this range: only the header".to_owned(),
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    };
    let name = if out == Path::new("-") { "standard output".to_owned() } else { out.display().to_string() };
    writeln!(stderr(), "{rows}, {} bytes, {checked}: {name}", receipt.bytes)?;
    Ok(ExitCode::SUCCESS)
}

async fn create(api: &Api, kind: ExportKind, filters: ExportFilters) -> Result<Export> {
    let random: [u8; 16] = random_bytes()?;
    let key: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let body = json!({"kind": kind, "format": "csv", "filters": filters});
    let call = Call {
        method: Method::POST,
        path: EXPORTS,
        body: Some(body.to_string().into_bytes()),
        idempotency_key: Some(&format!("assay-export-{key}")),
    };
    api.json(&call).await
}

/// What can be done about an export that goes on without us.
fn later(id: Option<&String>, out: &Path) -> String {
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
    let ends = [arguments.from, arguments.to].into_iter().flatten().map(|end| format!("-{}", in_a_name(end)));
    // An id is what the user typed: no part of a path.
    let what: String = what.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
    PathBuf::from(format!("assay-{what}{}.csv", ends.collect::<String>()))
}

/// The day, and the time of the day where it is not its beginning; without colons, which some file systems do not take.
fn in_a_name(moment: Timestamp) -> String {
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
    fn a_name_tells_the_day_and_only_then_the_time() {
        let cases = [
            ("2026-01-01", "2026-01-01"),
            ("2026-01-01T09:30:00Z", "2026-01-01T093000Z"),
            ("2026-01-01T09:30:00.250Z", "2026-01-01T093000.250Z"),
        ];
        for (moment, name) in cases {
            assert_eq!(in_a_name(Timestamp::parse(moment).unwrap()), name);
        }
    }
}
