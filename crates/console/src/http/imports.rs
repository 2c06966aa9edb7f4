//! Imports: counts by status, and how to import. What the API refused is known to its caller only: a refused conversation
//! is not stored, so there is no list of them.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_contracts::evaluations::{Dimension, SummaryQuery};
use assay_contracts::validation::shortened;

use super::Console;
use super::error::PageError;
use super::list_rows::{Row, row};
use super::respond::page;
use super::shell::Shell;
use super::viewer::Viewer;
use crate::app::{list_evaluations, read_coverage, summarize};
use crate::domain::{ListState, MAX_NAME_CHARACTERS, format_count, list_address};

/// Sources with the most conversations. A name may have a thousand characters, and stands in its address once more.
const LISTED_SOURCES: usize = 30;

#[derive(Template)]
#[template(path = "imports.html")]
struct ImportsPage {
    shell: Shell,
    /// Name, number, meaning, and the address of the rows.
    counts: Vec<(&'static str, String, &'static str, Option<String>)>,
    imported: String,
    /// Name, number, and the address of the rows.
    sources: Vec<(String, String, String)>,
    /// Whether sources with fewer conversations are left out.
    has_more_sources: bool,
    failed: Vec<Row>,
    is_empty: bool,
}

pub(crate) async fn show(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    let query = SummaryQuery { by: vec![Dimension::Source], ..SummaryQuery::default() };
    let failed_query = [("status", "failed".to_owned()), ("limit", "10".to_owned())];
    let (summary, failed) = futures_util::future::try_join(
        summarize(&console.services, &viewer.claims, &query),
        list_evaluations(&console.services, &viewer.claims, &failed_query),
    )
    .await?;
    let coverage = read_coverage(&console.services, &viewer.claims, &query.filters, &summary).await;
    let pending = coverage.map(|coverage| coverage.pending);
    let (pending_text, pending_meaning) = match pending {
        Some(pending) => (format_count(pending), "accepted, and evaluated in seconds"),
        None => ("–".to_owned(), "cannot be counted now: the service that keeps imports does not answer"),
    };
    let imported = summary.totals.count + pending.unwrap_or_default();
    let totals = &summary.totals;
    let rows_address = |status: &'static str, number: u64| {
        let pairs = [("status".to_owned(), status.to_owned())];
        (number > 0).then(|| list_address(&pairs))
    };
    let groups = summary.breakdown.iter().flat_map(|breakdown| &breakdown.groups);
    let has_more_sources = summary.breakdown.iter().any(|breakdown| breakdown.truncated)
        || groups.clone().nth(LISTED_SOURCES).is_some();
    let sources = groups.take(LISTED_SOURCES).map(|group| {
        let value = group.value.clone().unwrap_or_default();
        let address = list_address(&[("source".to_owned(), value.clone())]);
        (shortened(&value, MAX_NAME_CHARACTERS), format_count(group.measures.count), address)
    });
    let state = ListState::default();
    let template = ImportsPage {
        counts: vec![
            (
                "Scored",
                format_count(totals.scored),
                "with AXIS and audit",
                rows_address("scored", totals.scored),
            ),
            (
                "Not applicable",
                format_count(totals.not_applicable),
                "no message of an AI agent, or none of the customer",
                rows_address("not_applicable", totals.not_applicable),
            ),
            ("Pending", pending_text, pending_meaning, None),
            (
                "Failed",
                format_count(totals.failed),
                "could not be evaluated",
                rows_address("failed", totals.failed),
            ),
        ],
        imported: if imported == 1 {
            "1 conversation".to_owned()
        } else {
            format!("{} conversations", format_count(imported))
        },
        is_empty: imported == 0 && pending.is_some(),
        sources: sources.collect(),
        has_more_sources,
        failed: failed.data.iter().map(|item| row(item, &state)).collect(),
        shell: Shell::new(&request, &console, &viewer, "/console/imports", "Imports"),
    };
    page(&request, StatusCode::OK, &template)
}
