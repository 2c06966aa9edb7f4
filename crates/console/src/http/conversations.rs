//! The list of conversations: filters as chips and as a form, columns, order, pages. Its URL is its state.

use actix_web::HttpResponse;
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::agent::Agent;
use assay_contracts::evaluations::{EvaluationPage, Sort, Total};

use super::error::PageError;
use super::filter_form::{Chip, FilterForm, chips};
use super::form::{Faults, query_of};
use super::list_rows::{Row, row};
use super::respond::{page, redirect};
use super::shell::Shell;
use super::viewer::SessionRequest;
use crate::domain::{COLUMNS, Column, ListState, Pairs, ROWS_PER_PAGE, format_total, with_query};

/// Servers refuse longer addresses. A redirect may be longer than its request: a form encodes a space in one byte, a link in three.
const MAX_ADDRESS_BYTES: usize = 8 * 1024;

#[derive(Template)]
#[template(path = "conversations.html")]
struct ConversationsPage {
    shell: Shell,
    state: ListState,
    /// "214 conversations match the filter", or what is wrong.
    summary: String,
    /// What a partial update announces: the summary, the rows and their order.
    status: String,
    chips: Vec<Chip>,
    form: FilterForm,
    faults: Faults,
    /// Hidden fields of the form of each: the state of the list without it.
    search_hidden: Pairs,
    columns_hidden: Pairs,
    orders_hidden: Pairs,
    /// All orders. Narrow pages show them as a form, because their table has no heads to click.
    orders: Vec<Order>,
    heads: Vec<Head>,
    /// All columns, and whether they are shown.
    choices: Vec<(&'static Column, bool)>,
    rows: Vec<Row>,
    first_row: u64,
    total: String,
    next: Option<String>,
    export: String,
    is_filtered: bool,
}

struct Order {
    /// The value of the parameter `sort`.
    value: String,
    label: String,
    is_current: bool,
}

/// The head of a column.
struct Head {
    column: &'static Column,
    /// The address that a click leads to; `None`: not sortable.
    sort_address: Option<String>,
    /// The direction when the list is sorted by this column.
    direction: Option<&'static str>,
}

impl Head {
    fn is_number(&self) -> bool {
        matches!(self.column.name, "axis" | "ra" | "ie" | "hs" | "confidence")
    }

    fn title(&self) -> Option<&'static str> {
        match self.column.name {
            "ra" => Some("Resolution accuracy"),
            "ie" => Some("Interaction effort"),
            "hs" => Some("Handoff smoothness"),
            _ => None,
        }
    }
}

pub(crate) async fn show(request: SessionRequest) -> Result<HttpResponse, PageError> {
    let pairs = query_of(&request.http);
    if pairs.iter().any(|(_, value)| value.trim().is_empty()) {
        // A form sends its empty fields, too: redirect to the address without them.
        let address = ListState::parse(&pairs).map(|state| state.address()).ok();
        if let Some(address) = address.filter(|address| address.len() <= MAX_ADDRESS_BYTES) {
            return Ok(redirect(&address));
        }
    }
    let agents = request.services().list_agents_and_count_others();
    let (state, mut faults) = match ListState::parse(&pairs) {
        Ok(state) => (state, Faults::default()),
        Err(errors) => (ListState::default(), Faults::new(errors)),
    };
    let found =
        async { if faults.is_empty() { read_page(&request, &state).await.map(Some) } else { Ok(None) } };
    let (agents, found) = futures_util::future::join(agents, found).await;
    let (agents, other_agents) = agents?;
    let found = match found {
        Ok(found) => found,
        // Faults that only the service detects, such as a cursor of another list.
        Err(ClientError::ErrorStatus { status: 400, problem: Some(problem), .. }) => {
            faults = Faults::new(problem.errors);
            if faults.is_empty() {
                faults.add("cursor", "belongs to another list: begin again with the first page.");
            }
            None
        }
        Err(ClientError::ErrorStatus { status: 414, .. }) => {
            faults.add("filter", "is too long: leave some values out.");
            None
        }
        Err(error) => return Err(error.into()),
    };
    let status = faults.status();
    let shell = Shell::new(&request, "/console/conversations", "Conversations");
    let mut template = view(shell, state, &pairs, faults, &agents, found);
    template.form.unlisted_agents += other_agents;
    page(&request.http, status, &template)
}

async fn read_page(request: &SessionRequest, state: &ListState) -> Result<EvaluationPage, ClientError> {
    let mut query = state.filters.to_pairs();
    query.push(("sort", state.sort.to_string()));
    query.push(("limit", ROWS_PER_PAGE.to_string()));
    query.extend(state.cursor.clone().map(|cursor| ("cursor", cursor)));
    request.services().list_evaluations(&query).await
}

fn view(
    shell: Shell,
    state: ListState,
    typed: &[(String, String)],
    faults: Faults,
    agents: &[Agent],
    found: Option<EvaluationPage>,
) -> ConversationsPage {
    let without =
        |pairs: Pairs, name: &str| pairs.into_iter().filter(|pair| pair.0 != name).collect::<Pairs>();
    let is_filtered = !state.filter_pairs().is_empty() || !faults.is_empty();
    let first_row = state.first_row.filter(|_| state.cursor.is_some()).unwrap_or(1);
    let (rows, total, next, summary) = match &found {
        None => (Vec::new(), String::new(), None, "The filter cannot be read".to_owned()),
        Some(found) => {
            let rows: Vec<Row> = found.data.iter().map(|item| row(item, &state)).collect();
            let next_row = first_row + rows.len() as u64;
            let next = found.page_info.next_cursor.as_deref();
            let next = next.map(|cursor| state.next_address(cursor, next_row));
            (rows, format_total(&found.total), next, summary_text(&found.total, is_filtered))
        }
    };
    // A refused filter is kept by all forms as it was typed.
    let kept: Pairs = match faults.is_empty() {
        true => state.pairs_without_cursor(),
        false => typed.iter().filter(|pair| !matches!(pair.0.as_str(), "cursor" | "row")).cloned().collect(),
    };
    let status = match found {
        None => summary.clone(),
        Some(_) => {
            let row_range = match rows.is_empty() {
                true => String::new(),
                false => format!(", rows {first_row} to {}", first_row + rows.len() as u64 - 1),
            };
            format!("{summary}{row_range}, by {}", order_words(state.sort))
        }
    };
    ConversationsPage {
        status,
        summary,
        chips: if faults.is_empty() { chips(&state, agents) } else { Vec::new() },
        form: FilterForm::new(&kept, agents),
        search_hidden: without(kept.clone(), "search"),
        columns_hidden: without(kept.clone(), "column"),
        orders_hidden: without(kept, "sort"),
        orders: orders(state.sort),
        heads: state.shown_columns().map(|column| head(column, &state)).collect(),
        choices: COLUMNS.iter().map(|column| (column, state.shows(column))).collect(),
        export: with_query("/console/exports", &state.filter_pairs()),
        rows,
        first_row,
        total,
        next,
        faults,
        is_filtered,
        shell,
        state,
    }
}

/// "214 conversations match the filter".
fn summary_text(total: &Total, is_filtered: bool) -> String {
    let text = match (total.count, is_filtered) {
        (1, false) => "conversation",
        (1, true) => "conversation matches the filter",
        (_, false) => "conversations",
        (_, true) => "conversations match the filter",
    };
    format!("{} {text}", format_total(total))
}

/// The order in words: "AXIS, ascending".
fn order_words(sort: Sort) -> String {
    let column = COLUMNS.iter().find(|column| column.sort == Some(sort.key.as_str()));
    let direction = if sort.descending { "descending" } else { "ascending" };
    format!("{}, {direction}", column.map_or("time", |column| column.label))
}

/// Both directions of every sortable column.
fn orders(current: Sort) -> Vec<Order> {
    let keys = COLUMNS.iter().filter_map(|column| column.sort);
    let values = keys.flat_map(|key| [format!("-{key}"), key.to_owned()]);
    let order = |value: String| {
        let sort = Sort::parse(&value)?;
        Some(Order { label: order_words(sort), is_current: sort == current, value })
    };
    values.filter_map(order).collect()
}

fn head(column: &'static Column, state: &ListState) -> Head {
    let is_current = column.sort == Some(state.sort.key.as_str());
    Head {
        sort_address: column.sort.map(|key| state.address_sorted(key)),
        direction: is_current.then_some(if state.sort.descending { "descending" } else { "ascending" }),
        column,
    }
}
