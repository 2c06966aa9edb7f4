//! Stores which sequences have arrived: see `SequenceTracker`.

use std::collections::BTreeMap;

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::dsl::max;
use diesel::prelude::*;
use uuid::Uuid;

use super::Connection;
use super::schema::{early_sequences, exports, progress, skipped_sequences};
use crate::domain::sequence_tracker::{OutOfOrderRange, SequenceTracker};
use crate::store::SkippedSequences;

/// Keeps a statement below the limit on bound values of both databases.
const RANGES_PER_STATEMENT: usize = 1_000;

/// Records arrived evaluations of an organization.
pub(super) fn record(
    connection: &mut Connection,
    organization_id: OrganizationId,
    sequences: &[i64],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let organization = StoredId::of(organization_id);
    let stored = read_for_update(connection, organization)?;
    let mut tracker = stored.clone();
    for sequence in sequences {
        if *sequence <= stored.watermark() {
            remove_from_skipped(connection, organization, *sequence)?;
        }
        tracker.record(*sequence, now);
    }
    write(connection, organization, &stored, &tracker)
}

/// Number of sequences up to the target of the job that have not arrived; `None` without a target.
pub fn missing(connection: &mut Connection, id: ExportId) -> Result<Option<u64>, DatabaseError> {
    let (organization, target): (StoredId, Option<i64>) = exports::table
        .find(StoredId::of(id))
        .select((exports::organization_id, exports::target_sequence))
        .first(connection)?;
    let Some(target) = target else { return Ok(None) };
    // In this order: an evaluation that arrives between the statements may count as missing, but a missing one never as arrived.
    let ranges = out_of_order_ranges(connection, organization)?;
    let watermark: Option<i64> =
        progress::table.find(organization).select(progress::watermark).first(connection).optional()?;
    let skipped: Vec<(i64, i64)> = skipped_sequences::table
        .filter(skipped_sequences::organization_id.eq(organization))
        .filter(skipped_sequences::first.le(target))
        .select((skipped_sequences::first, skipped_sequences::last))
        .load(connection)?;
    let gaps = SequenceTracker::new(watermark.unwrap_or(0), ranges).gaps((1, target));
    // A skipped range may begin below the target and end beyond it.
    let count: i64 = gaps.into_iter().chain(skipped).map(|(first, last)| last.min(target) - first + 1).sum();
    Ok(u64::try_from(count).ok())
}

pub fn prune_skipped(
    connection: &mut Connection,
    organization_id: Option<OrganizationId>,
    before: Timestamp,
) -> Result<(), DatabaseError> {
    let old =
        diesel::delete(skipped_sequences::table).filter(skipped_sequences::older_than.lt(before.as_millis()));
    match organization_id {
        Some(id) => {
            old.filter(skipped_sequences::organization_id.eq(StoredId::of(id))).execute(connection)?
        }
        None => old.execute(connection)?,
    };
    Ok(())
}

/// Skips gaps before ranges that arrived before `cutoff`, and what is missing up to targets of exports created before `cutoff`.
pub fn skip_missing(
    connection: &mut Connection,
    cutoff: Timestamp,
) -> Result<Vec<SkippedSequences>, DatabaseError> {
    let organizations: Vec<StoredId> = early_sequences::table
        .select(early_sequences::organization_id)
        .filter(early_sequences::since.lt(cutoff.as_millis()))
        .distinct()
        .order(early_sequences::organization_id)
        .load(connection)?;
    let mut targets: BTreeMap<Uuid, i64> = exports::table
        .inner_join(progress::table.on(progress::organization_id.eq(exports::organization_id)))
        .filter(exports::created_at.lt(cutoff.as_millis()))
        .filter(exports::target_sequence.gt(progress::watermark.nullable()))
        .group_by(exports::organization_id)
        .select((exports::organization_id, max(exports::target_sequence)))
        .load::<(StoredId, Option<i64>)>(connection)?
        .into_iter()
        .filter_map(|(organization, target)| Some((organization.0, target?)))
        .collect();
    for organization in organizations {
        // 0: no target to skip to.
        targets.entry(organization.0).or_default();
    }
    let mut skipped = Vec::new();
    for (organization, target) in targets {
        let organization = StoredId(organization);
        let stored = read_for_update(connection, organization)?;
        let mut tracker = stored.clone();
        let mut ranges: Vec<(i64, i64)> = std::iter::from_fn(|| tracker.skip_gap(cutoff)).collect();
        ranges.extend(tracker.skip_to(target));
        write(connection, organization, &stored, &tracker)?;
        for sequences in ranges {
            // Some sequences of the range may have arrived.
            insert_skipped(connection, organization, &stored.gaps(sequences), cutoff)?;
            skipped.push(SkippedSequences { organization_id: organization.0.into(), sequences });
        }
    }
    Ok(skipped)
}

fn insert_skipped(
    connection: &mut Connection,
    organization: StoredId,
    ranges: &[(i64, i64)],
    older_than: Timestamp,
) -> Result<(), DatabaseError> {
    let ranges: Vec<_> = ranges
        .iter()
        .map(|(first, last)| {
            (
                skipped_sequences::organization_id.eq(organization),
                skipped_sequences::first.eq(*first),
                skipped_sequences::last.eq(*last),
                skipped_sequences::older_than.eq(older_than.as_millis()),
            )
        })
        .collect();
    for ranges in ranges.chunks(RANGES_PER_STATEMENT) {
        diesel::insert_into(skipped_sequences::table).values(ranges.to_vec()).execute(connection)?;
    }
    Ok(())
}

/// Removes a skipped sequence that has arrived; the rest of its range is still missing.
fn remove_from_skipped(
    connection: &mut Connection,
    organization: StoredId,
    sequence: i64,
) -> Result<(), DatabaseError> {
    let range: Option<(i64, i64, i64)> = diesel::delete(skipped_sequences::table)
        .filter(skipped_sequences::organization_id.eq(organization))
        .filter(skipped_sequences::first.le(sequence))
        .filter(skipped_sequences::last.ge(sequence))
        .returning((skipped_sequences::first, skipped_sequences::last, skipped_sequences::older_than))
        .get_result(connection)
        .optional()?;
    let Some((first, last, older_than)) = range else { return Ok(()) };
    let rest =
        [(first, sequence - 1), (sequence + 1, last)].into_iter().filter(|(first, last)| first <= last);
    let older_than = Timestamp::saturating_from_millis(older_than);
    insert_skipped(connection, organization, &rest.collect::<Vec<_>>(), older_than)
}

/// Reads the stored state and locks it until the end of the transaction, by an update that changes nothing.
fn read_for_update(
    connection: &mut Connection,
    organization: StoredId,
) -> Result<SequenceTracker, DatabaseError> {
    let watermark = diesel::insert_into(progress::table)
        .values((progress::organization_id.eq(organization), progress::watermark.eq(0)))
        .on_conflict(progress::organization_id)
        .do_update()
        .set(progress::watermark.eq(progress::watermark))
        .returning(progress::watermark)
        .get_result(connection)?;
    Ok(SequenceTracker::new(watermark, out_of_order_ranges(connection, organization)?))
}

fn out_of_order_ranges(
    connection: &mut Connection,
    organization: StoredId,
) -> Result<Vec<(i64, OutOfOrderRange)>, DatabaseError> {
    let ranges: Vec<(i64, i64, i64)> = early_sequences::table
        .filter(early_sequences::organization_id.eq(organization))
        .select((early_sequences::first, early_sequences::last, early_sequences::since))
        .load(connection)?;
    let range = |(first, last, since)| {
        (first, OutOfOrderRange { last, since: Timestamp::saturating_from_millis(since) })
    };
    Ok(ranges.into_iter().map(range).collect())
}

fn write(
    connection: &mut Connection,
    organization: StoredId,
    stored: &SequenceTracker,
    tracker: &SequenceTracker,
) -> Result<(), DatabaseError> {
    diesel::update(progress::table.find(organization))
        .set(progress::watermark.eq(tracker.watermark()))
        .execute(connection)?;
    // After an outage there is a range for each event that is retried: what does not change is not written again.
    let old_ranges: BTreeMap<i64, OutOfOrderRange> = stored.out_of_order().collect();
    let new_ranges: BTreeMap<i64, OutOfOrderRange> = tracker.out_of_order().collect();
    let removed: Vec<i64> = old_ranges
        .iter()
        .filter(|(first, range)| new_ranges.get(first) != Some(range))
        .map(|(first, _)| *first)
        .collect();
    for removed in removed.chunks(RANGES_PER_STATEMENT) {
        diesel::delete(early_sequences::table)
            .filter(early_sequences::organization_id.eq(organization))
            .filter(early_sequences::first.eq_any(removed))
            .execute(connection)?;
    }
    let added: Vec<_> = new_ranges
        .iter()
        .filter(|(first, range)| old_ranges.get(first) != Some(range))
        .map(|(first, range)| {
            (
                early_sequences::organization_id.eq(organization),
                early_sequences::first.eq(*first),
                early_sequences::last.eq(range.last),
                early_sequences::since.eq(range.since.as_millis()),
            )
        })
        .collect();
    for added in added.chunks(RANGES_PER_STATEMENT) {
        diesel::insert_into(early_sequences::table).values(added.to_vec()).execute(connection)?;
    }
    Ok(())
}
