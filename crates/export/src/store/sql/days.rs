//! Days in columns: reading them as of one moment, and making them again after changes.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use assay_contracts::evaluations::EvaluationFilters;
use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use assay_platform::runtime::new_id;
use diesel::prelude::*;
use diesel::sql_query;
use diesel::sql_types::{BigInt, Binary, Text};
use uuid::Uuid;

use super::facts_records::{DAY_COLUMNS, DayRecord, parsed_agents};
use super::{Connection, DIALECT, Id, RowByRow, serialize};
use crate::domain::day::{Day, DayBuilder, PackedScores, Texts, day_of, start_of};
use crate::store::conditions::Conditions;
use crate::store::{DayCache, FoundDays, MarkedDay};

/// Days of columns in one statement: bounds the memory for their bytes and columns.
const DAYS: usize = 64;

/// Texts that are remembered while rows are read.
const MAX_KNOWN_TEXTS: usize = 1_000;

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
    #[diesel(sql_type = BigInt)]
    rows: i64,
}

#[derive(QueryableByName)]
struct DayBytes {
    #[diesel(sql_type = BigInt)]
    day: i64,
    #[diesel(sql_type = Binary)]
    packed: Vec<u8>,
}

#[derive(QueryableByName)]
struct MarkedRecord {
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
    max_changed_rows: Option<u64>,
    cache: &DayCache,
) -> Result<FoundDays, DatabaseError> {
    let of = format!("organization_id = '{organization}' AND day BETWEEN {first} AND {last}");
    let stale: Vec<DayNumber> =
        sql_query(format!("SELECT DISTINCT day FROM stale_days WHERE {of} ORDER BY day")).load(connection)?;
    let stale: BTreeSet<i64> = stale.into_iter().map(|record| record.day).collect();
    let versions: Vec<DayVersion> =
        sql_query(format!("SELECT day, version, rows FROM evaluation_days WHERE {of}")).load(connection)?;
    let reads_stale = max_changed_rows.is_none_or(|max| changed_rows(&stale, &versions) <= max);
    let fresh = versions.into_iter().filter(|record| !stale.contains(&record.day));
    let mut days = columns_of(connection, organization, fresh, cache)?;
    if reads_stale {
        days.extend(read_changed(connection, organization, &stale)?);
    }
    let days = days.into_iter().filter(|(_, columns)| !columns.is_empty()).collect();
    Ok(FoundDays { days, is_complete: reads_stale })
}

/// Rows of the days with marks, as of when their columns were made; no limit suffices where a day has none yet.
fn changed_rows(stale: &BTreeSet<i64>, versions: &[DayVersion]) -> u64 {
    let known = versions.iter().filter(|record| stale.contains(&record.day));
    let (days, rows) =
        known.fold((0, 0), |(days, rows), record| (days + 1, rows + record.rows.unsigned_abs()));
    if days == stale.len() { rows } else { u64::MAX }
}

fn columns_of(
    connection: &mut Connection,
    organization: OrganizationId,
    versions: impl Iterator<Item = DayVersion>,
    cache: &DayCache,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    let mut days = BTreeMap::new();
    let mut unknown: Vec<(i64, Uuid)> = Vec::new();
    for DayVersion { day, version, .. } in versions {
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
    Ok(days)
}

pub(super) fn selected_days(
    connection: &mut Connection,
    organization: OrganizationId,
    filters: &EvaluationFilters,
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    Ok(read_rows(connection, Conditions::of(organization, filters, DIALECT))?.into_iter().collect())
}

/// A day with more rows takes longer to make, so it is made less often.
pub(super) fn next_marked(
    connection: &mut Connection,
    before: Timestamp,
    except: &[MarkedDay],
) -> Result<Option<MarkedDay>, DatabaseError> {
    let others = except.iter().map(|MarkedDay { organization_id, day }| {
        format!("AND NOT (stale.organization_id = '{organization_id}' AND stale.day = {day})")
    });
    let oldest = sql_query(format!(
        "SELECT stale.organization_id, stale.day FROM stale_days stale
         WHERE NOT EXISTS (SELECT 1 FROM evaluation_days days
                           WHERE days.organization_id = stale.organization_id AND days.day = stale.day
                             AND days.refreshed_at + days.rows / 10 > {})
           {}
         ORDER BY stale.marked_at, stale.day LIMIT 1",
        before.as_millis(),
        others.collect::<Vec<_>>().join(" ")
    ));
    let found: Option<MarkedRecord> = oldest.get_result(connection).optional()?;
    Ok(found.map(|found| MarkedDay { organization_id: found.organization_id.0.into(), day: found.day }))
}

/// Makes the columns of a marked day.
pub(super) fn refresh(
    connection: &mut Connection,
    marked: MarkedDay,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    // One process at a time: a slower one would overwrite newer columns with older ones.
    serialize(connection, "assay evaluation days")?;
    let MarkedDay { organization_id, day } = marked;
    let of = format!("organization_id = '{organization_id}' AND day = {day}");
    // The marks first: what is committed after this statement keeps its own mark.
    if sql_query(format!("DELETE FROM stale_days WHERE {of}")).execute(connection)? == 0 {
        // Another process was faster.
        return Ok(());
    }
    let conditions = Conditions::of_days(organization_id, (day, day));
    match read_rows(connection, conditions)?.remove(&day) {
        Some(columns) => store(connection, organization_id, day, &columns, now),
        None => {
            sql_query(format!("DELETE FROM evaluation_days WHERE {of}")).execute(connection)?;
            Ok(())
        }
    }
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

/// The columns of days that changed: one statement, because an import of the past changes hundreds of days at a time.
fn read_changed(
    connection: &mut Connection,
    organization: OrganizationId,
    days: &BTreeSet<i64>,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    if days.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ranges =
        runs(days).into_iter().map(|(first, last)| format!("({},{})", start_of(first), start_of(last + 1)));
    let ranges = ranges.collect::<Vec<_>>().join(",");
    let statement = format!(
        "WITH ranges (first, last) AS (VALUES {ranges})
         SELECT {DAY_COLUMNS} FROM ranges JOIN evaluation_facts facts
             ON facts.organization_id = '{organization}' AND facts.started_at >= ranges.first
                AND facts.started_at < ranges.last"
    );
    collect_rows(connection, statement, Vec::new())
}

/// The columns of the rows that satisfy conditions, by day.
fn read_rows(
    connection: &mut Connection,
    conditions: Conditions,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    let statement = format!("SELECT {DAY_COLUMNS} FROM evaluation_facts facts WHERE {}", conditions.sql);
    collect_rows(connection, statement, conditions.texts)
}

fn collect_rows(
    connection: &mut Connection,
    statement: String,
    texts: Vec<String>,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    let query = sql_query(statement).into_boxed::<super::Backend>();
    let query = texts.into_iter().fold(query, |query, text| query.bind::<Text, _>(text));
    let mut builders: BTreeMap<i64, DayBuilder> = BTreeMap::new();
    let mut known = KnownTexts::default();
    // Up to millions of rows: none is kept.
    for record in query.load_iter::<DayRecord, RowByRow>(connection)? {
        let record = record?;
        let started_at = Timestamp::saturating_from_millis(record.started_at);
        let (facets, scores) = (record.facets(), PackedScores::of(record.scores().as_ref()));
        let texts = known.of(record)?;
        builders.entry(day_of(started_at)).or_default().push(started_at, facets, scores, texts);
    }
    Ok(builders.into_iter().map(|(day, builder)| (day, Arc::new(builder.finish()))).collect())
}

/// The latest texts by the columns that they are made of: most rows repeat them.
#[derive(Default)]
struct KnownTexts(HashMap<(String, Option<String>, String), Texts>);

impl KnownTexts {
    fn of(&mut self, record: DayRecord) -> Result<&Texts, DatabaseError> {
        if self.0.len() >= MAX_KNOWN_TEXTS {
            self.0.clear();
        }
        Ok(match self.0.entry((record.source, record.language, record.agents)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let (source, language, agents) = place.key();
                let texts = Texts::new(source.clone(), language.clone(), &parsed_agents(agents)?);
                place.insert(texts)
            }
        })
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
