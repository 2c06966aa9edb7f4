//! Lists: ordered rows beyond a position, in a direction of reading.

use assay_contracts::evaluation::ChargeAssessment;
use assay_contracts::evaluations::{EvaluationFilters, Sort, SortKey};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_platform::db::DatabaseError;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::BigInt;

use super::facts_records::{DAY_COLUMNS, FactsRecord, LIST_COLUMNS};
use super::{Connection, DIALECT, bind_texts};
use crate::domain::evaluation_facts::EvaluationFacts;
use crate::domain::facets;
use crate::domain::ranking::{Rank, ReadDirection};
use crate::store::conditions::{Conditions, FACTS, code_of_field};
use crate::store::{ListPosition, ListSelection, RankBound};

const NEWEST_FIRST: &str = "facts.started_at DESC, facts.ticket_id DESC";

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

pub fn list(
    connection: &mut Connection,
    selection: &ListSelection,
    limit: u32,
) -> Result<Vec<EvaluationFacts>, DatabaseError> {
    let ListSelection { sort, direction, position, .. } = *selection;
    // The rows after one without a value have no value, either. They are ordered by date alone: an index has this order.
    let has_no_values = sort.key != SortKey::StartedAt
        && direction == ReadDirection::Forwards
        && position.is_some_and(|position| position.value.is_none());
    let order = if has_no_values { NEWEST_FIRST.to_owned() } else { order_by(sort, direction) };
    let Conditions { sql, bindings } = conditions(selection);
    let statement = match &selection.rank_bound {
        None => select("evaluation_facts facts", &sql, &order, limit),
        Some(bound) => {
            let RankBound { start_times, last } = bound.as_ref();
            let start_times = start_times.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            let up_to_last = format!("{sql} AND {}", up_to_rank(sort, direction, *last));
            // MATERIALIZED: otherwise the planner may merge the subquery and use the index of a filter, which finds far more rows
            // than the start times do.
            format!(
                "WITH facts AS MATERIALIZED (SELECT * FROM evaluation_facts
                  WHERE organization_id = '{}' AND started_at IN ({start_times})) {}",
                selection.organization_id,
                select("facts", &up_to_last, &order, limit)
            )
        }
    };
    let found: Vec<FactsRecord> = bind_texts(statement, bindings).load(connection)?;
    found.into_iter().map(EvaluationFacts::try_from).collect()
}

fn select(table: &str, conditions: &str, order: &str, limit: u32) -> String {
    format!(
        "SELECT {LIST_COLUMNS}, {DAY_COLUMNS} FROM {table} WHERE {conditions} ORDER BY {order} LIMIT {limit}"
    )
}

pub fn count(
    connection: &mut Connection,
    selection: &ListSelection,
    limit: u64,
) -> Result<u64, DatabaseError> {
    let Conditions { sql, bindings } = conditions(selection);
    let statement = format!(
        "SELECT count(*) AS count FROM (SELECT 1 FROM evaluation_facts facts WHERE {sql} LIMIT {limit}) counted"
    );
    into_count(bind_texts(statement, bindings).get_result(connection))
}

pub fn count_since(
    connection: &mut Connection,
    organization_id: OrganizationId,
    filters: &EvaluationFilters,
    since: TicketId,
) -> Result<u64, DatabaseError> {
    let since = format!("facts.ticket_id >= '{since}'");
    let Conditions { sql, .. } = Conditions::of_period(organization_id, filters, FACTS).and(&since);
    let statement = format!("SELECT count(*) AS count FROM evaluation_facts facts WHERE {sql}");
    into_count(sql_query(statement).get_result(connection))
}

fn into_count(result: QueryResult<Count>) -> Result<u64, DatabaseError> {
    Ok(u64::try_from(result?.count).unwrap_or_default())
}

pub fn find(
    connection: &mut Connection,
    organization: OrganizationId,
    ticket: TicketId,
    filters: &EvaluationFilters,
) -> Result<Option<(EvaluationFacts, bool)>, DatabaseError> {
    let statement = format!(
        "SELECT {LIST_COLUMNS}, {DAY_COLUMNS} FROM evaluation_facts facts
          WHERE facts.ticket_id = '{ticket}' AND facts.organization_id = '{organization}'"
    );
    let found: Option<FactsRecord> = sql_query(statement).get_result(connection).optional()?;
    let Some(found) = found else { return Ok(None) };
    let Conditions { sql, bindings } =
        Conditions::of(organization, filters, DIALECT).and(&format!("facts.ticket_id = '{ticket}'"));
    let statement = format!("SELECT count(*) AS count FROM evaluation_facts facts WHERE {sql}");
    let is_selected = into_count(bind_texts(statement, bindings).get_result(connection))? > 0;
    Ok(Some((found.try_into()?, is_selected)))
}

fn conditions(selection: &ListSelection) -> Conditions {
    let all = Conditions::of(selection.organization_id, &selection.filters, DIALECT);
    match &selection.position {
        Some(position) => all.and(&beyond_position(selection.sort, selection.direction, position)),
        None => all,
    }
}

/// The expression for the value of the sort key; NULL: no value.
fn sort_expression(key: SortKey) -> String {
    match key {
        SortKey::StartedAt => "facts.started_at".to_owned(),
        SortKey::Charge => {
            let not_applicable = facets::code_of(ChargeAssessment::NotApplicable);
            format!("NULLIF(NULLIF({}, 0), {not_applicable})", code_of_field(facets::CHARGE))
        }
        SortKey::Axis
        | SortKey::ResolutionAccuracy
        | SortKey::InteractionEffort
        | SortKey::HandoffSmoothness
        | SortKey::Confidence => format!("facts.{}", key.as_str()),
    }
}

/// Whether an expression that a list has in descending (or ascending) order is read in descending order.
fn reads_descending(list_is_descending: bool, direction: ReadDirection) -> bool {
    match direction {
        ReadDirection::Forwards => list_is_descending,
        ReadDirection::Backwards => !list_is_descending,
    }
}

/// The order of reading. In a list rows with the same value are ordered by date, the newest first.
fn order_by(sort: Sort, direction: ReadDirection) -> String {
    let order = |descending: bool| if reads_descending(descending, direction) { "DESC" } else { "ASC" };
    if sort.key == SortKey::StartedAt {
        let order = order(sort.descending);
        return format!("facts.started_at {order}, facts.ticket_id {order}");
    }
    let (value, ties) = (sort_expression(sort.key), order(true));
    // False sorts before true: in a list rows without a value come last.
    format!(
        "({value} IS NULL) {}, {value} {}, facts.started_at {ties}, facts.ticket_id {ties}",
        order(false),
        order(sort.descending)
    )
}

/// The condition for the rows that follow a position in the direction of reading.
fn beyond_position(sort: Sort, direction: ReadDirection, position: &ListPosition) -> String {
    let operator = |descending: bool| if reads_descending(descending, direction) { "<" } else { ">" };
    let ticket = format!("('{}')", position.ticket_id);
    let ties = |descending: bool| {
        let (operator, started_at) = (operator(descending), position.started_at.as_millis());
        format!("(facts.started_at, facts.ticket_id) {operator} ({started_at}, {ticket})")
    };
    if sort.key == SortKey::StartedAt {
        return ties(sort.descending);
    }
    let (value, ties, operator) = (sort_expression(sort.key), ties(true), operator(sort.descending));
    match (position.value, direction) {
        (Some(at), ReadDirection::Forwards) => {
            format!("({value} {operator} {at} OR ({value} = {at} AND {ties}) OR {value} IS NULL)")
        }
        (Some(at), ReadDirection::Backwards) => {
            format!("({value} {operator} {at} OR ({value} = {at} AND {ties}))")
        }
        (None, ReadDirection::Forwards) => format!("({value} IS NULL AND {ties})"),
        (None, ReadDirection::Backwards) => format!("({value} IS NOT NULL OR {ties})"),
    }
}

/// The condition for the rows that have the rank `last` or come before it in the direction of reading.
fn up_to_rank(sort: Sort, direction: ReadDirection, last: Rank) -> String {
    // Rows with the same value are newest first in any list; only the list by date may begin with the oldest.
    let newest_first = sort.key != SortKey::StartedAt || sort.descending;
    let date_operator = if reads_descending(newest_first, direction) { ">=" } else { "<=" };
    let date = format!("facts.started_at {date_operator} {}", last.started_at());
    if sort.key == SortKey::StartedAt {
        return date;
    }
    let value = sort_expression(sort.key);
    let operator = if reads_descending(sort.descending, direction) { ">" } else { "<" };
    match (last.value(sort), direction) {
        (Some(at), ReadDirection::Forwards) => {
            format!("({value} {operator} {at} OR ({value} = {at} AND {date}))")
        }
        (Some(at), ReadDirection::Backwards) => {
            format!("({value} {operator} {at} OR ({value} = {at} AND {date}) OR {value} IS NULL)")
        }
        (None, ReadDirection::Forwards) => format!("({value} IS NOT NULL OR {date})"),
        (None, ReadDirection::Backwards) => format!("({value} IS NULL AND {date})"),
    }
}
