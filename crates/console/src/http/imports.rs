//! Imports: counts by status, what was refused and why, and how to import. A refused conversation is not stored: what is known
//! of it is what the API answered.

use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::evaluation::TicketEvaluation;
use assay_contracts::evaluations::{Dimension, EvaluationFilters, Measures, SummaryQuery};
use assay_contracts::refusal::ImportRefusal;
use assay_contracts::validation::shortened;
use assay_platform::runtime::now;

use super::error::PageError;
use super::filter_form::filter_line;
use super::form::{Faults, query_of};
use super::list_rows::{Row, row};
use super::overview_parts::list_address_with;
use super::respond::page;
use super::shell::Shell;
use super::viewer::SessionRequest;
use crate::app::{ImportCounts, OrganizationServices};
use crate::domain::{ListState, MAX_NAME_CHARACTERS, PageTime, format_count, list_address};

pub(crate) const ADDRESS: &str = "/console/imports";

/// Maximum number of listed sources. A name may have a thousand characters, and stands in its address once more.
const MAX_SOURCES: usize = 30;

/// Maximum number of failed conversations that are listed with their reasons; the list of conversations has all.
const MAX_FAILURES: usize = 10;

#[derive(Template)]
#[template(path = "imports.html")]
struct ImportsPage {
    shell: Shell,
    faults: Faults,
    /// The period in words; empty: everything.
    period: String,
    /// Name of a status, number, meaning, and the address of the list.
    counts: Vec<(&'static str, String, &'static str, Option<String>)>,
    /// The accepted conversations; without the pending ones when these cannot be counted.
    imported: String,
    is_pending_counted: bool,
    /// Address of the list of all; absent while imports are pending, because the list does not have these.
    all: Option<String>,
    /// Name, number, and the address of the list; those with the most conversations.
    sources: Vec<(String, String, String)>,
    /// Whether sources with fewer conversations are left out.
    has_more_sources: bool,
    /// With the reason of each failure.
    failed: Vec<(Row, String)>,
    is_empty: bool,
    /// The latest refused imports of any period, newest first.
    refused: Vec<Refused>,
    is_refused_known: bool,
}

struct Refused {
    title: &'static str,
    status: u16,
    time: PageTime,
    /// Pointers of fields, and what is wrong with each; without a pointer: with the request as a whole.
    faults: Vec<(String, String)>,
    /// Number of further faults.
    omitted_faults: usize,
}

pub(crate) async fn show(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let (state, faults) = read_period(&request.http);
    let services = request.services();
    let query = SummaryQuery {
        filters: state.filters.clone(),
        by: vec![Dimension::Source],
        ..SummaryQuery::default()
    };
    let failed = failed_rows(services, &state.filters);
    let (summary, failed) = futures_util::future::try_join(services.summarize(&query), failed).await?;
    let import_counts = services.count_imports(&query.filters, &summary);
    let (import_counts, refused) = futures_util::future::join(import_counts, services.list_refusals()).await;
    let imported = summary.totals.count + import_counts.map_or(0, |counts| counts.coverage.pending);
    let at_least = import_counts.map_or("", ImportCounts::at_least);
    let filters = state.filter_pairs();
    let groups = summary.breakdown.iter().flat_map(|breakdown| &breakdown.groups);
    let has_more_sources = summary.breakdown.iter().any(|breakdown| breakdown.truncated)
        || groups.clone().nth(MAX_SOURCES).is_some();
    let sources = groups.take(MAX_SOURCES).map(|group| {
        let value = group.value.clone().unwrap_or_default();
        let address = list_address_with(&filters, &[("source", &value)]);
        (shortened(&value, MAX_NAME_CHARACTERS), format_count(group.measures.count), address)
    });
    let template = ImportsPage {
        counts: count_rows(&summary.totals, import_counts, &filters),
        imported: if imported == 1 {
            "1 conversation".to_owned()
        } else {
            format!("{at_least}{} conversations", format_count(imported))
        },
        is_pending_counted: import_counts.is_some(),
        all: (imported > 0 && imported == summary.totals.count).then(|| list_address(&filters)),
        is_empty: imported == 0 && import_counts.is_some(),
        is_refused_known: refused.is_some(),
        refused: refused.unwrap_or_default().into_iter().map(refused_import).collect(),
        sources: sources.collect(),
        has_more_sources,
        failed,
        period: filter_line(&state, &[]),
        shell: Shell::new(&request, ADDRESS, "Imports"),
        faults,
    };
    page(&request.http, template.faults.status(), &template)
}

/// The period of the query, which has no other filter, and its faults.
fn read_period(request: &HttpRequest) -> (ListState, Faults) {
    let query = query_of(request);
    let faults = Faults::of_parameters(&query, &["from", "to"]);
    if !faults.is_empty() {
        return (ListState::default(), faults);
    }
    match ListState::parse(&query) {
        Ok(state) => (state, faults),
        Err(errors) => (ListState::default(), Faults::new(errors)),
    }
}

/// Name, number, meaning, and the address of the list of each status.
fn count_rows(
    totals: &Measures,
    import_counts: Option<ImportCounts>,
    filters: &[(String, String)],
) -> Vec<(&'static str, String, &'static str, Option<String>)> {
    let address_of =
        |status: &str, number: u64| (number > 0).then(|| list_address_with(filters, &[("status", status)]));
    let (pending_text, pending_meaning) = match import_counts {
        Some(counts) => {
            let number = format!("{}{}", counts.at_least(), format_count(counts.coverage.pending));
            (number, "accepted, waiting for the evaluation: not listed yet")
        }
        None => ("–".to_owned(), "cannot be counted now: the service that keeps imports does not answer"),
    };
    let not_applicable_meaning = "no message of an AI agent, or none of the customer";
    let Measures { scored, not_applicable, failed, .. } = *totals;
    vec![
        ("Scored", format_count(scored), "with AXIS and audit", address_of("scored", scored)),
        (
            "Not applicable",
            format_count(not_applicable),
            not_applicable_meaning,
            address_of("not_applicable", not_applicable),
        ),
        ("Pending", pending_text, pending_meaning, None),
        ("Failed", format_count(failed), "could not be evaluated", address_of("failed", failed)),
    ]
}

fn refused_import(refusal: ImportRefusal) -> Refused {
    let faults = if refusal.errors.is_empty() {
        vec![(String::new(), refusal.detail)]
    } else {
        refusal.errors.into_iter().map(|error| (error.pointer, error.detail)).collect()
    };
    Refused {
        title: refusal.code.title(),
        status: refusal.code.status(),
        time: PageTime::recent(refusal.refused_at, now()),
        faults,
        omitted_faults: refusal.omitted_errors,
    }
}

/// The latest failed conversations, and why each failed, which only its evaluation says.
async fn failed_rows(
    services: OrganizationServices<'_>,
    filters: &EvaluationFilters,
) -> Result<Vec<(Row, String)>, ClientError> {
    let mut query = filters.to_pairs();
    query.extend([("status", "failed".to_owned()), ("limit", MAX_FAILURES.to_string())]);
    let listed = services.list_evaluations(&query).await?;
    let reasons = listed.data.iter().map(|item| services.find_evaluation(item.ticket.id));
    let reasons = futures_util::future::join_all(reasons).await;
    let reason = |found: Result<Option<TicketEvaluation>, ClientError>| match found {
        Ok(Some(TicketEvaluation::Unscored { error_message: Some(reason), .. })) => reason,
        Ok(_) => String::new(),
        Err(error) => {
            tracing::warn!(cause = %error, "the reason of a failure is not known");
            String::new()
        }
    };
    let state = ListState::default();
    let rows = listed.data.iter().map(|item| row(item, &state));
    Ok(rows.zip(reasons.into_iter().map(reason)).collect())
}
