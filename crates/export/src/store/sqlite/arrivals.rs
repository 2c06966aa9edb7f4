//! Which evaluations have arrived, by their numbers. All inside the transaction of `Sqlite::write`.

use std::collections::BTreeMap;

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::DatabaseError;
use diesel::dsl::max;
use diesel::prelude::*;
use diesel::sqlite::SqliteConnection;
use uuid::Uuid;

use super::schema::{early_arrivals, exports, progress};
use crate::domain::arrivals::{Arrivals, Early};
use crate::store::GivenUp;
use crate::store::record::StoredId;

/// Far below the limits on bound values of both databases.
const RANGES_PER_STATEMENT: usize = 1_000;

/// Notes evaluations of an organization.
pub(super) fn take_in(
    connection: &mut SqliteConnection,
    organization_id: OrganizationId,
    sequences: &[Option<i64>],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let organization = StoredId::of(organization_id);
    diesel::insert_into(progress::table)
        .values((progress::organization_id.eq(organization), progress::taken_in.eq(0)))
        .on_conflict_do_nothing()
        .execute(connection)?;
    let known = read(connection, organization)?;
    let mut arrivals = known.clone();
    sequences.iter().for_each(|sequence| arrivals.take_in(*sequence, now));
    write(connection, organization, &known, &arrivals)
}

/// Gives up every gap before something that has been here since before `limit`, and what exports wait for in vain that were
/// created before it.
pub(super) fn give_up(
    connection: &mut SqliteConnection,
    limit: Timestamp,
) -> Result<Vec<GivenUp>, DatabaseError> {
    let organizations: Vec<StoredId> = early_arrivals::table
        .select(early_arrivals::organization_id)
        .filter(early_arrivals::since.lt(limit.as_millis()))
        .distinct()
        .order(early_arrivals::organization_id)
        .load(connection)?;
    let mut waited_for: BTreeMap<Uuid, i64> = exports::table
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
        waited_for.entry(organization.0).or_default();
    }
    let mut given_up = Vec::new();
    for (organization, last) in waited_for {
        let organization = StoredId(organization);
        let known = read(connection, organization)?;
        let mut arrivals = known.clone();
        while let Some(numbers) = arrivals.give_up(limit) {
            given_up.push(GivenUp { organization_id: organization.0.into(), numbers });
        }
        if let Some(numbers) = arrivals.give_up_to(last) {
            given_up.push(GivenUp { organization_id: organization.0.into(), numbers });
        }
        write(connection, organization, &known, &arrivals)?;
    }
    Ok(given_up)
}

/// The organization's record is locked until the end of the transaction.
fn read(connection: &mut SqliteConnection, organization: StoredId) -> Result<Arrivals, DatabaseError> {
    let taken_in = progress::table.find(organization).select(progress::taken_in).first(connection)?;
    let early: Vec<(i64, i64, i64)> = early_arrivals::table
        .filter(early_arrivals::organization_id.eq(organization))
        .select((early_arrivals::first, early_arrivals::last, early_arrivals::since))
        .load(connection)?;
    let early = early
        .into_iter()
        .map(|(first, last, since)| (first, Early { last, since: Timestamp::saturating_from_millis(since) }));
    Ok(Arrivals::new(taken_in, early))
}

fn write(
    connection: &mut SqliteConnection,
    organization: StoredId,
    known: &Arrivals,
    arrivals: &Arrivals,
) -> Result<(), DatabaseError> {
    diesel::update(progress::table.find(organization))
        .set(progress::taken_in.eq(arrivals.taken_in()))
        .execute(connection)?;
    if known.early().eq(arrivals.early()) {
        return Ok(());
    }
    diesel::delete(early_arrivals::table.filter(early_arrivals::organization_id.eq(organization)))
        .execute(connection)?;
    let ranges: Vec<_> = arrivals
        .early()
        .map(|(first, early)| {
            (
                early_arrivals::organization_id.eq(organization),
                early_arrivals::first.eq(first),
                early_arrivals::last.eq(early.last),
                early_arrivals::since.eq(early.since.as_millis()),
            )
        })
        .collect();
    // There are as many ranges as gaps: usually none, and few after an outage.
    for ranges in ranges.chunks(RANGES_PER_STATEMENT) {
        diesel::insert_into(early_arrivals::table).values(ranges.to_vec()).execute(connection)?;
    }
    Ok(())
}
