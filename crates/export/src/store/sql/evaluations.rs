//! Lists: rows in order, from a place in it.

use std::sync::Arc;

use assay_contracts::evaluations::{EvaluationFilters, Sort, SortKey};
use assay_contracts::ids::{OrganizationId, TicketId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use async_trait::async_trait;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Bool, Integer, Nullable, SmallInt, Text};

use super::{Backend, Connection, DIALECT, Id, SqlStore, days, read_snapshot};
use crate::domain::day::Day;
use crate::domain::evaluation_facts::{EvaluationColumns, EvaluationFacts, Scores, TicketColumns};
use crate::domain::facets::{self, Facets};
use crate::domain::terms;
use crate::store::conditions::{Conditions, Dialect, any_term, code_of_field};
use crate::store::{DayCache, EvaluationStore, ListPosition, ListSelection};

const COLUMNS: &str = "facts.ticket_id, facts.organization_id, facts.started_at, facts.ended_at, facts.imported_at,
    facts.external_id, facts.source, facts.source_account_id, facts.subject, facts.agents, facts.evaluation_id,
    facts.evaluated_at, facts.codes, facts.sets, facts.axis, facts.resolution_accuracy, facts.interaction_effort,
    facts.handoff_smoothness, facts.confidence, facts.language";

#[derive(QueryableByName)]
struct FactsRecord {
    #[diesel(sql_type = Id)]
    ticket_id: StoredId,
    #[diesel(sql_type = Id)]
    organization_id: StoredId,
    #[diesel(sql_type = BigInt)]
    started_at: i64,
    #[diesel(sql_type = BigInt)]
    ended_at: i64,
    #[diesel(sql_type = BigInt)]
    imported_at: i64,
    #[diesel(sql_type = Text)]
    external_id: String,
    #[diesel(sql_type = Text)]
    source: String,
    #[diesel(sql_type = Nullable<Text>)]
    source_account_id: Option<String>,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Text)]
    agents: String,
    #[diesel(sql_type = Id)]
    evaluation_id: StoredId,
    #[diesel(sql_type = BigInt)]
    evaluated_at: i64,
    #[diesel(sql_type = Integer)]
    codes: i32,
    #[diesel(sql_type = BigInt)]
    sets: i64,
    #[diesel(sql_type = Nullable<SmallInt>)]
    axis: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    resolution_accuracy: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    interaction_effort: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    handoff_smoothness: Option<i16>,
    #[diesel(sql_type = Nullable<SmallInt>)]
    confidence: Option<i16>,
    #[diesel(sql_type = Nullable<Text>)]
    language: Option<String>,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

#[derive(QueryableByName)]
struct Selected {
    #[diesel(sql_type = Bool)]
    selected: bool,
}

#[async_trait]
impl EvaluationStore for SqlStore {
    async fn list(
        &self,
        selection: ListSelection,
        limit: u32,
    ) -> Result<Vec<EvaluationFacts>, DatabaseError> {
        self.database.read(move |connection| list(connection, &selection, limit)).await
    }

    async fn count(&self, selection: ListSelection, limit: u64) -> Result<u64, DatabaseError> {
        self.database.read(move |connection| count(connection, &selection, limit)).await
    }

    async fn find(
        &self,
        organization_id: OrganizationId,
        ticket_id: TicketId,
        filters: EvaluationFilters,
    ) -> Result<Option<(EvaluationFacts, bool)>, DatabaseError> {
        self.database.read(move |connection| find(connection, organization_id, ticket_id, &filters)).await
    }

    async fn days(
        &self,
        organization_id: OrganizationId,
        between: (i64, i64),
        cache: Arc<DayCache>,
    ) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
        let read = move |connection: &mut _| days::days(connection, organization_id, between, &cache);
        read_snapshot(&self.database, read).await
    }

    async fn selected_days(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
    ) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
        self.database.read(move |connection| days::selected_days(connection, organization_id, &filters)).await
    }

    async fn count_since(
        &self,
        organization_id: OrganizationId,
        filters: EvaluationFilters,
        since: TicketId,
    ) -> Result<u64, DatabaseError> {
        let since = format!("facts.ticket_id >= '{since}'");
        let Conditions { sql, .. } = Conditions::of_period(organization_id, &filters, "facts").and(&since);
        let statement = format!("SELECT count(*) AS count FROM evaluation_facts facts WHERE {sql}");
        self.database.read(move |connection| counted(sql_query(statement).get_result(connection))).await
    }

    async fn refresh_day(&self, before: Timestamp, now: Timestamp) -> Result<bool, DatabaseError> {
        self.database.write(move |connection| days::refresh(connection, before, now)).await
    }
}

fn list(
    connection: &mut Connection,
    selection: &ListSelection,
    limit: u32,
) -> Result<Vec<EvaluationFacts>, DatabaseError> {
    let Conditions { sql, texts } = conditions(selection);
    let order = order(selection.sort, selection.backwards);
    let query = sql_query(format!(
        "SELECT {COLUMNS} FROM evaluation_facts facts WHERE {sql} ORDER BY {order} LIMIT {limit}"
    ))
    .into_boxed::<Backend>();
    let query = texts.into_iter().fold(query, |query, text| query.bind::<Text, _>(text));
    query.load::<FactsRecord>(connection)?.into_iter().map(EvaluationFacts::try_from).collect()
}

fn count(connection: &mut Connection, selection: &ListSelection, limit: u64) -> Result<u64, DatabaseError> {
    let Conditions { sql, texts } = conditions(selection);
    let query = sql_query(format!(
        "SELECT count(*) AS count FROM (SELECT 1 FROM evaluation_facts facts WHERE {sql} LIMIT {limit}) counted"
    ))
    .into_boxed::<Backend>();
    counted(texts.into_iter().fold(query, |query, text| query.bind::<Text, _>(text)).get_result(connection))
}

fn counted(result: QueryResult<Count>) -> Result<u64, DatabaseError> {
    Ok(u64::try_from(result?.count).unwrap_or_default())
}

fn find(
    connection: &mut Connection,
    organization: OrganizationId,
    ticket: TicketId,
    filters: &EvaluationFilters,
) -> Result<Option<(EvaluationFacts, bool)>, DatabaseError> {
    let statement = format!(
        "SELECT {COLUMNS} FROM evaluation_facts facts
          WHERE facts.ticket_id = '{ticket}' AND facts.organization_id = '{organization}'"
    );
    let found: Option<FactsRecord> = sql_query(statement).get_result(connection).optional()?;
    let Some(found) = found else { return Ok(None) };
    let Conditions { sql, texts } =
        Conditions::of(organization, filters, DIALECT).and(&format!("facts.ticket_id = '{ticket}'"));
    let query = sql_query(format!("SELECT 1 = 1 AS selected FROM evaluation_facts facts WHERE {sql}"));
    let query =
        texts.into_iter().fold(query.into_boxed::<Backend>(), |query, text| query.bind::<Text, _>(text));
    let selected: Option<Selected> = query.get_result(connection).optional()?;
    Ok(Some((found.try_into()?, selected.is_some_and(|found| found.selected))))
}

fn conditions(selection: &ListSelection) -> Conditions {
    let all = Conditions::of(selection.organization_id, &selection.filters, DIALECT);
    let all = match &selection.values {
        Some(values) => all.and(&with_values(selection.sort.key, values)),
        None => all,
    };
    match &selection.after {
        Some(place) => all.and(&beyond(selection.sort, selection.backwards, place)),
        None => all,
    }
}

/// The value of the sort key; NULL where there is none.
fn value(key: SortKey) -> String {
    match key {
        SortKey::StartedAt => "facts.started_at".to_owned(),
        SortKey::Charge => format!("NULLIF({}, 0)", code_of_field(facets::CHARGE)),
        SortKey::Axis
        | SortKey::ResolutionAccuracy
        | SortKey::InteractionEffort
        | SortKey::HandoffSmoothness
        | SortKey::Confidence => format!("facts.{}", key.as_str()),
    }
}

/// Ties: the newest conversation first, but for the list from the oldest on.
fn order(sort: Sort, backwards: bool) -> String {
    let direction = |descending: bool| if descending != backwards { "DESC" } else { "ASC" };
    if sort.key == SortKey::StartedAt {
        let direction = direction(sort.descending);
        return format!("facts.started_at {direction}, facts.ticket_id {direction}");
    }
    let (value, ties) = (value(sort.key), direction(true));
    // False before true: without a value last.
    format!(
        "({value} IS NULL) {}, {value} {}, facts.started_at {ties}, facts.ticket_id {ties}",
        direction(false),
        direction(sort.descending)
    )
}

/// The rows behind a place.
fn beyond(sort: Sort, backwards: bool, place: &ListPosition) -> String {
    let compared = |descending: bool| if descending != backwards { "<" } else { ">" };
    let tie = format!("('{}')", place.ticket_id);
    let ties = |descending: bool| {
        let (compared, started_at) = (compared(descending), place.started_at.as_millis());
        format!("(facts.started_at, facts.ticket_id) {compared} ({started_at}, {tie})")
    };
    if sort.key == SortKey::StartedAt {
        return ties(sort.descending);
    }
    let (value, ties, compared) = (value(sort.key), ties(true), compared(sort.descending));
    match (place.value, backwards) {
        (Some(at), false) => {
            format!("({value} {compared} {at} OR ({value} = {at} AND {ties}) OR {value} IS NULL)")
        }
        (Some(at), true) => format!("({value} {compared} {at} OR ({value} = {at} AND {ties}))"),
        (None, false) => format!("({value} IS NULL AND {ties})"),
        (None, true) => format!("({value} IS NOT NULL OR {ties})"),
    }
}

/// Rows with one of these values of the sort key.
fn with_values(key: SortKey, values: &[i64]) -> String {
    let list = values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let condition = format!("{} IN ({list})", value(key));
    let field = match key {
        _ if DIALECT == Dialect::Sqlite => return condition,
        SortKey::Axis => terms::AXIS,
        SortKey::ResolutionAccuracy => terms::RESOLUTION_ACCURACY,
        SortKey::InteractionEffort => terms::INTERACTION_EFFORT,
        SortKey::HandoffSmoothness => terms::HANDOFF_SMOOTHNESS,
        SortKey::Confidence => {
            let steps = values.iter().filter_map(|value| u8::try_from(*value).ok());
            let steps: Vec<i32> = steps.map(terms::confidence_term).collect();
            return format!("{condition} AND {}", any_term(&steps));
        }
        SortKey::StartedAt | SortKey::Charge => return condition,
    };
    let tenths = values.iter().filter_map(|value| u32::try_from(*value).ok());
    any_term(&tenths.map(|tenths| terms::tenths_term(field, tenths)).collect::<Vec<_>>())
}

impl TryFrom<FactsRecord> for EvaluationFacts {
    type Error = DatabaseError;

    fn try_from(record: FactsRecord) -> Result<Self, DatabaseError> {
        let moment = Timestamp::saturating_from_millis;
        let agents = serde_json::from_str(&record.agents).map_err(|error| {
            DatabaseError::Corrupt(format!("agents of the evaluation of {}: {error}", record.ticket_id.0))
        })?;
        Ok(Self {
            ticket: TicketColumns {
                organization_id: record.organization_id.0.into(),
                ticket_id: record.ticket_id.0.into(),
                started_at: moment(record.started_at),
                ended_at: moment(record.ended_at),
                imported_at: moment(record.imported_at),
                external_id: record.external_id,
                source: record.source,
                source_account_id: record.source_account_id,
                subject: record.subject,
                agents,
            },
            evaluation: EvaluationColumns {
                evaluation_id: record.evaluation_id.0.into(),
                evaluated_at: moment(record.evaluated_at),
                facets: Facets::from_stored(record.codes, record.sets),
                scores: Scores::from_stored([
                    record.axis,
                    record.resolution_accuracy,
                    record.interaction_effort,
                    record.handoff_smoothness,
                    record.confidence,
                ]),
                language: record.language,
            },
        })
    }
}
