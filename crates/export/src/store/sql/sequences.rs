//! Which evaluations have arrived, by their sequence.

use std::collections::BTreeMap;

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::dsl::max;
use diesel::prelude::*;
use uuid::Uuid;

use super::Connection;
use super::schema::{early_arrivals, exports, progress};
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
    let known = read(connection, organization)?;
    let mut tracker = known.clone();
    sequences.iter().for_each(|sequence| tracker.record(*sequence, now));
    write(connection, organization, &known, &tracker)
}

/// Skips gaps before ranges that arrived before `limit`, and unmet targets of exports created before `limit`.
pub(super) fn skip_missing(
    connection: &mut Connection,
    limit: Timestamp,
) -> Result<Vec<SkippedSequences>, DatabaseError> {
    let organizations: Vec<StoredId> = early_arrivals::table
        .select(early_arrivals::organization_id)
        .filter(early_arrivals::since.lt(limit.as_millis()))
        .distinct()
        .order(early_arrivals::organization_id)
        .load(connection)?;
    let mut targets: BTreeMap<Uuid, i64> = exports::table
        .inner_join(progress::table.on(progress::organization_id.eq(exports::organization_id)))
        .filter(exports::created_at.lt(limit.as_millis()))
        .filter(exports::awaited_evaluations.gt(progress::taken_in.nullable()))
        .group_by(exports::organization_id)
        .select((exports::organization_id, max(exports::awaited_evaluations)))
        .load::<(StoredId, Option<i64>)>(connection)?
        .into_iter()
        .filter_map(|(organization, last)| Some((organization.0, last?)))
        .collect();
    for organization in organizations {
        targets.entry(organization.0).or_default();
    }
    let mut skipped = Vec::new();
    for (organization, last) in targets {
        let organization = StoredId(organization);
        let known = read(connection, organization)?;
        let mut tracker = known.clone();
        while let Some(sequences) = tracker.skip_gap(limit) {
            skipped.push(SkippedSequences { organization_id: organization.0.into(), sequences });
        }
        if let Some(sequences) = tracker.skip_to(last) {
            skipped.push(SkippedSequences { organization_id: organization.0.into(), sequences });
        }
        write(connection, organization, &known, &tracker)?;
    }
    Ok(skipped)
}

/// The record of the organization stays locked until the end of the transaction, because it is written.
fn read(connection: &mut Connection, organization: StoredId) -> Result<SequenceTracker, DatabaseError> {
    let watermark = diesel::insert_into(progress::table)
        .values((progress::organization_id.eq(organization), progress::taken_in.eq(0)))
        .on_conflict(progress::organization_id)
        .do_update()
        .set(progress::taken_in.eq(progress::taken_in))
        .returning(progress::taken_in)
        .get_result(connection)?;
    let ranges: Vec<(i64, i64, i64)> = early_arrivals::table
        .filter(early_arrivals::organization_id.eq(organization))
        .select((early_arrivals::first, early_arrivals::last, early_arrivals::since))
        .load(connection)?;
    let ranges = ranges.into_iter().map(|(first, last, since)| {
        (first, OutOfOrderRange { last, since: Timestamp::saturating_from_millis(since) })
    });
    Ok(SequenceTracker::new(watermark, ranges))
}

fn write(
    connection: &mut Connection,
    organization: StoredId,
    known: &SequenceTracker,
    tracker: &SequenceTracker,
) -> Result<(), DatabaseError> {
    diesel::update(progress::table.find(organization))
        .set(progress::taken_in.eq(tracker.watermark()))
        .execute(connection)?;
    if known.out_of_order().eq(tracker.out_of_order()) {
        return Ok(());
    }
    diesel::delete(early_arrivals::table.filter(early_arrivals::organization_id.eq(organization)))
        .execute(connection)?;
    let ranges: Vec<_> = tracker
        .out_of_order()
        .map(|(first, range)| {
            (
                early_arrivals::organization_id.eq(organization),
                early_arrivals::first.eq(first),
                early_arrivals::last.eq(range.last),
                early_arrivals::since.eq(range.since.as_millis()),
            )
        })
        .collect();
    // One range for each gap: usually none, a few after an outage.
    for ranges in ranges.chunks(RANGES_PER_STATEMENT) {
        diesel::insert_into(early_arrivals::table).values(ranges.to_vec()).execute(connection)?;
    }
    Ok(())
}
