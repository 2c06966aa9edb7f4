//! The columns of days: reads them in one snapshot, and writes those of stale days again.

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
use diesel::sql_types::{BigInt, Binary};
use uuid::Uuid;

use super::facts_records::{DAY_COLUMNS, DayRecord, parse_agents};
use super::{Connection, DIALECT, Id, RowByRow, bind_texts, lock_until_commit, read_snapshot};
use crate::domain::day::{Day, DayBuilder, PackedScores, Texts, day_of, start_of};
use crate::store::conditions::Conditions;
use crate::store::{DayCache, FoundDays, StaleDay};

/// Number of days whose columns one statement reads: bounds the memory for packed bytes and unpacked columns.
const DAYS_PER_STATEMENT: usize = 64;

/// Maximum bytes of the texts that are cached while rows are read, without what the map itself takes.
const MAX_CACHED_BYTES: usize = 2 * 1024 * 1024;

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
struct StaleRecord {
    #[diesel(sql_type = Id)]
    organization_id: StoredId,
    #[diesel(sql_type = BigInt)]
    day: i64,
}

pub fn days(
    connection: &mut Connection,
    organization: OrganizationId,
    between: (i64, i64),
    max_stale_rows: Option<u64>,
    cache: &DayCache,
) -> Result<FoundDays, DatabaseError> {
    read_snapshot(connection, |snapshot| find_days(snapshot, organization, between, max_stale_rows, cache))
}

fn find_days(
    connection: &mut Connection,
    organization: OrganizationId,
    (first, last): (i64, i64),
    max_stale_rows: Option<u64>,
    cache: &DayCache,
) -> Result<FoundDays, DatabaseError> {
    let condition = format!("organization_id = '{organization}' AND day BETWEEN {first} AND {last}");
    let select_stale = format!("SELECT DISTINCT day FROM stale_days WHERE {condition} ORDER BY day");
    let stale: Vec<DayNumber> = sql_query(select_stale).load(connection)?;
    let stale: BTreeSet<i64> = stale.into_iter().map(|record| record.day).collect();
    let select_versions = format!("SELECT day, version, rows FROM evaluation_days WHERE {condition}");
    let versions: Vec<DayVersion> = sql_query(select_versions).load(connection)?;
    let reads_stale = max_stale_rows.is_none_or(|max| stale_rows(&stale, &versions) <= max);
    let fresh = versions.into_iter().filter(|record| !stale.contains(&record.day));
    let mut days = fresh_columns(connection, organization, fresh, cache)?;
    if reads_stale {
        days.extend(read_stale(connection, organization, &stale)?);
    }
    let days = days.into_iter().filter(|(_, columns)| !columns.is_empty()).collect();
    Ok(FoundDays { days, is_complete: reads_stale })
}

/// Number of rows of the stale days when their columns were written; `u64::MAX` when one of them has no columns yet.
fn stale_rows(stale: &BTreeSet<i64>, versions: &[DayVersion]) -> u64 {
    let with_columns: Vec<_> = versions.iter().filter(|record| stale.contains(&record.day)).collect();
    if with_columns.len() < stale.len() {
        return u64::MAX;
    }
    with_columns.iter().map(|record| record.rows.unsigned_abs()).sum()
}

/// The columns of days that are not stale: from the cache, or read and then cached.
fn fresh_columns(
    connection: &mut Connection,
    organization: OrganizationId,
    versions: impl Iterator<Item = DayVersion>,
    cache: &DayCache,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    let mut days = BTreeMap::new();
    let mut uncached: Vec<(i64, Uuid)> = Vec::new();
    for DayVersion { day, version, .. } in versions {
        match cache.get(organization, day, version.0) {
            Some(columns) => {
                days.insert(day, columns);
            }
            None => uncached.push((day, version.0)),
        }
    }
    for chunk in uncached.chunks(DAYS_PER_STATEMENT) {
        for (day, columns) in read_columns(connection, organization, chunk)? {
            if let Some((_, version)) = chunk.iter().find(|(other, _)| *other == day) {
                cache.put(organization, day, *version, columns.clone());
            }
            days.insert(day, columns);
        }
    }
    Ok(days)
}

pub fn rows_by_day(
    connection: &mut Connection,
    organization: OrganizationId,
    filters: &EvaluationFilters,
) -> Result<Vec<(i64, Arc<Day>)>, DatabaseError> {
    Ok(read_rows(connection, Conditions::of(organization, filters, DIALECT))?.into_iter().collect())
}

pub fn next_stale(
    connection: &mut Connection,
    before: Timestamp,
    except: &[StaleDay],
) -> Result<Option<StaleDay>, DatabaseError> {
    let exclusions = except.iter().map(|StaleDay { organization_id, day }| {
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
        exclusions.collect::<Vec<_>>().join(" ")
    ));
    let found: Option<StaleRecord> = oldest.get_result(connection).optional()?;
    Ok(found.map(|found| StaleDay { organization_id: found.organization_id.0.into(), day: found.day }))
}

pub fn refresh(
    connection: &mut Connection,
    stale_day: StaleDay,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    // One process at a time: a slower one would overwrite newer columns with older ones.
    lock_until_commit(connection, "assay evaluation days")?;
    let StaleDay { organization_id, day } = stale_day;
    let condition = format!("organization_id = '{organization_id}' AND day = {day}");
    // The marks are deleted before the rows are read: a change that is committed in between keeps its own mark.
    if sql_query(format!("DELETE FROM stale_days WHERE {condition}")).execute(connection)? == 0 {
        // Another process has refreshed this day.
        return Ok(());
    }
    let conditions = Conditions::of_days(organization_id, (day, day));
    match read_rows(connection, conditions)?.remove(&day) {
        Some(columns) => write_columns(connection, organization_id, day, &columns, now),
        None => {
            sql_query(format!("DELETE FROM evaluation_days WHERE {condition}")).execute(connection)?;
            Ok(())
        }
    }
}

fn write_columns(
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

/// Reads stale days from their rows: in one statement, because an import of old conversations changes hundreds of days.
fn read_stale(
    connection: &mut Connection,
    organization: OrganizationId,
    days: &BTreeSet<i64>,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    if days.is_empty() {
        return Ok(BTreeMap::new());
    }
    let range = |(first, last): (i64, i64)| format!("({},{})", start_of(first), start_of(last + 1));
    let ranges = consecutive_days(days).into_iter().map(range).collect::<Vec<_>>().join(",");
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
    collect_rows(connection, statement, conditions.bindings)
}

fn collect_rows(
    connection: &mut Connection,
    statement: String,
    bindings: Vec<String>,
) -> Result<BTreeMap<i64, Arc<Day>>, DatabaseError> {
    let mut builders: BTreeMap<i64, DayBuilder> = BTreeMap::new();
    let mut texts_cache = TextsCache::default();
    // Up to millions of rows, so they are read one by one.
    for record in bind_texts(statement, bindings).load_iter::<DayRecord, RowByRow>(connection)? {
        let record = record?;
        let started_at = Timestamp::saturating_from_millis(record.started_at);
        let (facets, scores) = (record.facets(), PackedScores::of(record.scores().as_ref()));
        let row_texts = texts_cache.get_or_parse(record)?;
        builders.entry(day_of(started_at)).or_default().push(started_at, facets, scores, row_texts);
    }
    Ok(builders.into_iter().map(|(day, builder)| (day, Arc::new(builder.finish()))).collect())
}

/// Parsed language, source and agents, by the strings of the row: most rows repeat them.
#[derive(Default)]
struct TextsCache {
    texts: HashMap<(String, Option<String>, String), Texts>,
    bytes: usize,
}

impl TextsCache {
    fn get_or_parse(&mut self, record: DayRecord) -> Result<&Texts, DatabaseError> {
        if self.bytes > MAX_CACHED_BYTES {
            *self = Self::default();
        }
        Ok(match self.texts.entry((record.source, record.language, record.agents)) {
            Entry::Occupied(cached) => cached.into_mut(),
            Entry::Vacant(entry) => {
                let (source, language, agents) = entry.key();
                let texts = Texts::new(source.clone(), language.clone(), &parse_agents(agents)?);
                self.bytes += source.len() + agents.len() + texts.weight();
                entry.insert(texts)
            }
        })
    }
}

/// Consecutive days as ranges, both ends included.
fn consecutive_days(days: &BTreeSet<i64>) -> Vec<(i64, i64)> {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for day in days {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *day => *last = *day,
            _ => ranges.push((*day, *day)),
        }
    }
    ranges
}
