//! Which ids the partitions of a table cover.

use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use super::PartitionedTable;

/// Ids from `from` (inclusive) to `to` (exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IdRange {
    pub(super) from: Uuid,
    pub(super) to: Uuid,
}

impl IdRange {
    pub(super) fn is_empty(self) -> bool {
        self.from >= self.to
    }

    pub(super) fn contains(self, id: Uuid) -> bool {
        self.from <= id && id < self.to
    }

    /// The ids that are in both ranges; may be empty.
    pub(super) fn intersection(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), to: self.to.min(other.to) }
    }
}

#[derive(QueryableByName)]
struct Bounds {
    #[diesel(sql_type = Nullable<SqlUuid>)]
    first: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    after: Option<Uuid>,
}

/// The ranges of ids that no partition of `table` covers, in ascending order: the default partition takes these ids.
pub(super) fn gaps(connection: &mut PgConnection, table: PartitionedTable) -> QueryResult<Vec<IdRange>> {
    // NULL stands for MINVALUE or MAXVALUE.
    const BOUNDS: &str = "
        SELECT substring(bound FROM 'FROM \\(''([0-9a-f-]+)''\\)')::uuid AS first,
               substring(bound FROM 'TO \\(''([0-9a-f-]+)''\\)')::uuid AS after
          FROM (SELECT pg_get_expr(child.relpartbound, child.oid) AS bound
                  FROM pg_inherits
                  JOIN pg_class AS child ON child.oid = pg_inherits.inhrelid
                  JOIN pg_class AS parent ON parent.oid = pg_inherits.inhparent
                 WHERE parent.relnamespace = current_schema()::regnamespace AND parent.relname = $1) AS partitions
         WHERE bound <> 'DEFAULT'
         ORDER BY first NULLS FIRST";
    let partitions: Vec<Bounds> = diesel::sql_query(BOUNDS).bind::<Text, _>(table.name).load(connection)?;
    let covered = partitions.into_iter().map(|Bounds { first, after }| IdRange {
        from: first.unwrap_or(Uuid::nil()),
        to: after.unwrap_or(Uuid::max()),
    });
    Ok(uncovered(covered))
}

/// The ranges that are not in `covered`, which is in ascending order.
fn uncovered(covered: impl Iterator<Item = IdRange>) -> Vec<IdRange> {
    let mut from = Uuid::nil();
    let mut gaps = Vec::new();
    for range in covered {
        gaps.push(IdRange { from, to: range.from });
        from = range.to;
    }
    gaps.push(IdRange { from, to: Uuid::max() });
    gaps.retain(|gap| !gap.is_empty());
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: u128, to: u128) -> IdRange {
        IdRange { from: Uuid::from_u128(from), to: Uuid::from_u128(to) }
    }

    #[test]
    fn gaps_are_the_ranges_that_no_partition_covers() {
        const MAX: u128 = u128::MAX;
        let gaps = |covered: &[(u128, u128)]| uncovered(covered.iter().map(|(from, to)| range(*from, *to)));
        assert_eq!(gaps(&[]), [range(0, MAX)]);
        assert_eq!(gaps(&[(3, 5), (5, 8), (10, 11)]), [range(0, 3), range(8, 10), range(11, MAX)]);
        assert_eq!(gaps(&[(0, 5), (7, MAX)]), [range(5, 7)]);
    }
}
