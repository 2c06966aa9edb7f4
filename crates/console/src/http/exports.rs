//! Exports: the list, the form for a new one with the filter of the URL, and downloads.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::agent::Agent;
use assay_contracts::export::{Export, ExportFormat, ExportKind, ExportStatus, FileStatus, NewExport};
use assay_contracts::ids::ExportId;
use assay_contracts::page::Page;
use assay_contracts::validation::shortened;

use super::error::PageError;
use super::filter_form::{Chip, chips, filter_line};
use super::form::{Faults, Fields, query_of};
use super::kept_form::kept_fields;
use super::long_list::refused_cursor;
use super::respond::{page, redirect};
use super::session_form::CheckedForm;
use super::shell::Shell;
use super::viewer::{PublicAddress, SessionRequest};
use crate::domain::{ListState, PageTime, Pairs, first_value, format_count, list_address, with_query};

/// Longer filters of exports are shortened; the list of their conversations shows them whole.
const MAX_FILTER_CHARACTERS: usize = 400;

#[derive(Template)]
#[template(path = "exports.html")]
struct ExportsPage {
    shell: Shell,
    exports: Vec<Row>,
    next: Option<String>,
    is_first_page: bool,
    /// The filter of a new export.
    chips: Vec<Chip>,
    hidden: Pairs,
    /// Address of the list of these conversations.
    list: String,
    has_bad_filter: bool,
    /// Value, label, meaning, and whether it is chosen; the page calls them columns.
    kinds: [(&'static str, &'static str, &'static str, bool); 2],
    faults: Faults,
    /// What is wrong with the cursor.
    query_faults: Faults,
    is_created: bool,
}

struct Row {
    id: String,
    kind: &'static str,
    filter: String,
    /// Address of the list of its conversations.
    list: String,
    created: PageTime,
    status: &'static str,
    /// When the file is or was removed; absent if files are kept for ever.
    file_ends: Option<PageTime>,
    /// "up to 3 evaluations missing".
    missing: Option<String>,
    can_download: bool,
    is_running: bool,
    error: Option<String>,
}

pub(crate) async fn list(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let Some(kept) = kept_fields(&request.http) else {
        return show(&request, query_of(&request.http), "axis", None).await;
    };
    let (kind, filters) = kind_and_filters(kept);
    show(&request, filters, &kind, None).await
}

pub(crate) async fn create(CheckedForm { request, fields }: CheckedForm) -> Result<HttpResponse, PageError> {
    let (kind, filters) = kind_and_filters(fields);
    let Some(kind) = ExportKind::from_name(&kind) else {
        let mut faults = Faults::default();
        faults.add("kind", "Choose what is exported.");
        return show(&request, filters, "", Some(faults)).await;
    };
    let state = match ListState::parse(&filters) {
        Ok(state) => state,
        Err(errors) => {
            let faults = Faults::new(errors);
            return show(&request, filters, kind.as_str(), Some(faults)).await;
        }
    };
    let new = NewExport { kind, format: ExportFormat::Csv, filters: state.filters };
    match request.services().create_export(&new).await {
        Ok(_) => Ok(redirect("/console/exports?done=created")),
        // 429: the organization has too many open exports.
        Err(ClientError::ErrorStatus { status: 400 | 429, problem: Some(problem), .. }) => {
            let faults = Faults::of_problem(*problem, "kind");
            show(&request, filters, kind.as_str(), Some(faults)).await
        }
        Err(error) => Err(error.into()),
    }
}

/// The kind that was chosen, empty without a choice, and the filter.
fn kind_and_filters(fields: Fields) -> (String, Pairs) {
    let kind = fields.get("kind").to_owned();
    (kind, fields.into_pairs().into_iter().filter(|pair| pair.0 != "kind").collect())
}

/// Redirects to the file, under an address that is signed now.
pub(crate) async fn download(request: SessionRequest, id: Path<String>) -> Result<HttpResponse, PageError> {
    let id: ExportId = id.parse().map_err(|_| PageError::NotFound)?;
    let base_url = PublicAddress::of(&request.http).base_url;
    let address = request.services().download_address(&base_url, id).await?;
    Ok(redirect(&address))
}

async fn show(
    request: &SessionRequest,
    query: Pairs,
    kind: &str,
    faults: Option<Faults>,
) -> Result<HttpResponse, PageError> {
    let (cursor, is_created) = (first_value(&query, "cursor"), first_value(&query, "done").is_some());
    let filters: Pairs =
        query.iter().filter(|pair| !matches!(pair.0.as_str(), "cursor" | "done")).cloned().collect();
    let base_url = PublicAddress::of(&request.http).base_url;
    let listed = read_page(request, &base_url, cursor);
    let ((exports, query_faults), agents) =
        futures_util::future::try_join(listed, request.services().list_agents()).await?;
    let (state, has_bad_filter, faults) = match (ListState::parse(&filters), faults) {
        (Ok(state), faults) => (state, false, faults.unwrap_or_default()),
        (Err(_), Some(faults)) => (ListState::default(), true, faults),
        (Err(errors), None) => (ListState::default(), true, Faults::new(errors)),
    };
    let shown = state.filter_pairs();
    let has_faults = !(faults.is_empty() && query_faults.is_empty());
    let status = if has_faults { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let next = exports.page_info.next_cursor.as_ref();
    let next = next.map(|cursor| with_query("/console/exports", &[("cursor".to_owned(), cursor.clone())]));
    let template = ExportsPage {
        shell: Shell::new(request, "/console/exports", "Exports"),
        exports: exports.data.iter().map(|export| row(export, &agents)).collect(),
        next,
        is_first_page: cursor.is_none() || !query_faults.is_empty(),
        chips: chips(&state, &agents),
        hidden: if has_bad_filter { filters.clone() } else { shown.clone() },
        // The list has the form in which a refused filter can be corrected.
        list: list_address(if has_bad_filter { &filters } else { &shown }),
        has_bad_filter,
        kinds: [
            ("axis", "Scores", "AXIS, its parts, reasons and facts: one row a conversation", kind == "axis"),
            (
                "resolution_audit",
                "Audit",
                "what was resolved, by whom, and the charge: one row a conversation",
                kind == "resolution_audit",
            ),
        ],
        faults,
        query_faults,
        is_created,
    };
    page(&request.http, status, &template)
}

/// The page of the cursor; the first one and the fault when the cursor is refused.
async fn read_page(
    request: &SessionRequest,
    base_url: &str,
    cursor: Option<&str>,
) -> Result<(Page<Export>, Faults), ClientError> {
    let listed = request.services().list_exports(base_url, cursor).await;
    let faults = refused_cursor(cursor, &listed);
    if faults.is_empty() {
        return Ok((listed?, faults));
    }
    Ok((request.services().list_exports(base_url, None).await?, faults))
}

fn row(export: &Export, agents: &[Agent]) -> Row {
    let state = ListState { filters: export.filters.clone(), ..ListState::default() };
    let filter = filter_line(&state, agents);
    Row {
        id: export.id.to_string(),
        kind: match export.kind {
            ExportKind::Axis => "Scores",
            ExportKind::ResolutionAudit => "Audit",
        },
        filter: if filter.is_empty() {
            "all conversations".to_owned()
        } else {
            shortened(&filter, MAX_FILTER_CHARACTERS)
        },
        list: list_address(&state.filter_pairs()),
        created: PageTime::long(export.created_at),
        status: status_word(export),
        file_ends: export.file_expires_at.map(PageTime::long),
        missing: missing_text(export),
        can_download: export.status == ExportStatus::Complete && !is_expired(export),
        is_running: matches!(export.status, ExportStatus::Pending | ExportStatus::Running),
        error: export.error_message.clone(),
    }
}

/// A file that may lack evaluations is ready, but not complete.
fn status_word(export: &Export) -> &'static str {
    match export.status {
        ExportStatus::Pending => "waiting",
        ExportStatus::Running => "being written",
        ExportStatus::Complete if is_expired(export) => "expired",
        ExportStatus::Complete if export.evaluations_complete == Some(false) => "ready",
        ExportStatus::Complete => "complete",
        ExportStatus::Failed => "failed",
    }
}

fn is_expired(export: &Export) -> bool {
    export.file_status == Some(FileStatus::Expired)
}

/// What the file may lack. The number is an upper bound: it counts evaluations that the filter does not select, too.
fn missing_text(export: &Export) -> Option<String> {
    if export.evaluations_complete != Some(false) {
        return None;
    }
    Some(match export.missing_evaluations {
        None | Some(0) => "may lack evaluations".to_owned(),
        Some(1) => "up to 1 evaluation missing".to_owned(),
        Some(number) => format!("up to {} evaluations missing", format_count(number)),
    })
}
