//! Days in columns: reading them as of one moment, and making them again after changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use assay_contracts::evaluations::{EvaluationFilters, ItemAgent};
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::runtime::new_id;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, SmallInt, Text};
use uuid::Uuid;

use super::{Connection, DIALECT, Id, LOCK_DAYS};
use crate::domain::day::{Day, DayBuilder, PackedScores, Texts, day_of, start_of};
use crate::domain::evaluation_facts::Scores;
use crate::domain::facets::Facets;
use crate::store::DayCache;
use crate::store::conditions::Conditions;

/// Days of columns in one statement: bounds the memory for their bytes and columns.
const DAYS: usize = 64;

/// The columns of a row that days have, too.
#[derive(QueryableByName)]
struct ColumnsRecord {
    #[diesel(sql_type = BigInt)]
    started_at: i64,
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
    #[diesel(sql_type = Text)]
    source: String,
    #[diesel(sql_type = Text)]
    agents: String,
}

#[derive(QueryableByName)]
struct DayNumber {
    #[diesel(sql_type = BigInt)]
    day: i64,
}

#[derive(QueryableByName)]
struct DayVersion {
    #[diesel(sql_type = BigInt)]
    day: i64,
    #[diesel(sql_type = Id)]
    version: StoredId,
}

#[derive(QueryableByName)]
struct DayBytes {
    #[diesel(sql_type = BigInt)]
    day: i64,
    #[diesel(sql_type = Binary)]
    packed: Vec<u8>,
}

#[derive(QueryableByName)]
struct Marked {
    #[diesel(sql_type = Id)]
    organization_id: StoredId,
    #[diesel(sql_type = BigInt)]
    day: i64,
}

/// In one snapshot: the days with marks are read from rows, the others from their columns.
pub(super) fn days(
    connection: &mut Connection,
    organization: OrganizationId,
    (first, last): (i64, i64),
    cache: &DayCache,
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    let of = format!("organization_id = '{organization}' AND day BETWEEN {first} AND {last}");
    let stale: Vec<DayNumber> =
        sql_query(format!("SELECT DISTINCT day FROM stale_days WHERE {of} ORDER BY day")).load(connection)?;
    let stale: BTreeSet<i64> = stale.into_iter().map(|record| record.day).collect();
    let versions: Vec<DayVersion> =
        sql_query(format!("SELECT day, version FROM evaluation_days WHERE {of}")).load(connection)?;
    let mut days = BTreeMap::new();
    let mut unknown: Vec<(i64, Uuid)> = Vec::new();
    for DayVersion { day, version } in versions.into_iter().filter(|record| !stale.contains(&record.day)) {
        match cache.get(organization, day, version.0) {
            Some(columns) => {
                days.insert(day, columns);
            }
            None => unknown.push((day, version.0)),
        }
    }
    for chunk in unknown.chunks(DAYS) {
        for (day, columns) in read_columns(connection, organization, chunk)? {
            if let Some((_, version)) = chunk.iter().find(|(other, _)| *other == day) {
                cache.put(organization, day, *version, columns.clone());
            }
            days.insert(day, columns);
        }
    }
    for (first, last) in runs(&stale) {
        let period = format!(
            "facts.organization_id = '{organization}' AND facts.started_at >= {} AND facts.started_at < {}",
            start_of(first),
            start_of(last + 1)
        );
        days.extend(read_rows(connection, Conditions { sql: period, texts: Vec::new() })?);
    }
    Ok(days.into_iter().filter(|(_, columns)| !columns.is_empty()).collect())
}

pub(super) fn selected_days(
    connection: &mut Connection,
    organization: OrganizationId,
    filters: &EvaluationFilters,
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    Ok(read_rows(connection, Conditions::of(organization, filters, DIALECT))?.into_iter().collect())
}

/// Makes the columns of one marked day.
pub(super) fn refresh(
    connection: &mut Connection,
    before: Timestamp,
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    sql_query(LOCK_DAYS).execute(connection)?;
    // A day with more rows takes longer, so it is made less often.
    let marked = sql_query(format!(
        "SELECT stale.organization_id, stale.day FROM stale_days stale
         WHERE NOT EXISTS (SELECT 1 FROM evaluation_days days
                           WHERE days.organization_id = stale.organization_id AND days.day = stale.day
                             AND days.refreshed_at + days.rows / 10 > {})
         ORDER BY stale.marked_at, stale.day LIMIT 1",
        before.as_millis()
    ));
    let Some(Marked { organization_id, day }) = marked.get_result(connection).optional()? else {
        return Ok(false);
    };
    let organization = OrganizationId::from(organization_id.0);
    let of = format!("organization_id = '{organization}' AND day = {day}");
    // The marks first: what is committed after this statement keeps its own mark.
    sql_query(format!("DELETE FROM stale_days WHERE {of}")).execute(connection)?;
    let period = format!(
        "facts.organization_id = '{organization}' AND facts.started_at >= {} AND facts.started_at < {}",
        start_of(day),
        start_of(day + 1)
    );
    let columns = read_rows(connection, Conditions { sql: period, texts: Vec::new() })?.remove(&day);
    match columns {
        Some(columns) => store(connection, organization, day, &columns, now)?,
        None => {
            sql_query(format!("DELETE FROM evaluation_days WHERE {of}")).execute(connection)?;
        }
    }
    Ok(true)
}

fn store(
    connection: &mut Connection,
    organization: OrganizationId,
    day: i64,
    columns: &Day,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let packed = columns
        .to_bytes()
        .map_err(|error| DatabaseError::Corrupt(format!("day {day} of {organization}: {error}")))?;
    let version: Uuid = new_id();
    sql_query(format!(
        "INSERT INTO evaluation_days (organization_id, day, version, refreshed_at, rows, packed)
         VALUES ('{organization}', {day}, '{version}', {}, {}, $1)
         ON CONFLICT (organization_id, day) DO UPDATE
            SET version = excluded.version, refreshed_at = excluded.refreshed_at, rows = excluded.rows,
                packed = excluded.packed",
        now.as_millis(),
        columns.len()
    ))
    .bind::<Binary, _>(packed)
    .execute(connection)?;
    Ok(())
}

fn read_columns(
    connection: &mut Connection,
    organization: OrganizationId,
    days: &[(i64, Uuid)],
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    let numbers = days.iter().map(|(day, _)| day.to_string()).collect::<Vec<_>>().join(",");
    let found: Vec<DayBytes> = sql_query(format!(
        "SELECT day, packed FROM evaluation_days WHERE organization_id = '{organization}' AND day IN ({numbers})"
    ))
    .load(connection)?;
    let decode = |DayBytes { day, packed }| {
        let columns = Day::from_bytes(&packed)
            .map_err(|error| DatabaseError::Corrupt(format!("day {day} of {organization}: {error}")))?;
        Ok((day, Arc::new(columns)))
    };
    found.into_iter().map(decode).collect()
}

/// The columns of the rows that satisfy conditions, by day.
fn read_rows(
    connection: &mut Connection,
    conditions: Conditions,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    let query = sql_query(format!(
        "SELECT facts.started_at, facts.codes, facts.sets, facts.axis, facts.resolution_accuracy,
                facts.interaction_effort, facts.handoff_smoothness, facts.confidence, facts.language, facts.source,
                facts.agents
           FROM evaluation_facts facts WHERE {}",
        conditions.sql
    ))
    .into_boxed::<super::Backend>();
    let query = conditions.texts.into_iter().fold(query, |query, text| query.bind::<Text, _>(text));
    let mut builders: BTreeMap<i64, DayBuilder> = BTreeMap::new();
    let mut agents: HashMap<String, Vec<ItemAgent>> = HashMap::new();
    for record in query.load::<ColumnsRecord>(connection)? {
        let scores = PackedScores::of(record.scores().as_ref());
        let facets = Facets::from_stored(record.codes, record.sets);
        if !agents.contains_key(&record.agents) {
            let parsed = serde_json::from_str(&record.agents)
                .map_err(|error| DatabaseError::Corrupt(format!("agents of an evaluation: {error}")))?;
            agents.insert(record.agents.clone(), parsed);
        }
        let found = agents.get(&record.agents).map(Vec::as_slice).unwrap_or_default();
        let started_at = Timestamp::saturating_from_millis(record.started_at);
        let texts = Texts::new(record.source, record.language, found);
        builders.entry(day_of(started_at)).or_default().push(started_at, facets, scores, texts);
    }
    Ok(builders.into_iter().map(|(day, builder)| (day, Arc::new(builder.finish()))).collect())
}

impl ColumnsRecord {
    fn scores(&self) -> Option<Scores> {
        Scores::from_stored([
            self.axis,
            self.resolution_accuracy,
            self.interaction_effort,
            self.handoff_smoothness,
            self.confidence,
        ])
    }
}

/// Consecutive days as ranges, both ends included.
fn runs(days: &BTreeSet<i64>) -> Vec<(i64, i64)> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for day in days {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *day => *last = *day,
            _ => runs.push((*day, *day)),
        }
    }
    runs
}
