//! Progress of the read model against the target of an export. The same statements for both databases.

use std::collections::{BTreeMap, HashSet};

use assay_contracts::ids::{EventId, OrganizationId};

use super::ReceivedRow;

/// The target sequence of a job, and the watermark of its organization.
pub(super) const TARGET_AND_WATERMARK: &str = "
    SELECT exports.awaited_evaluations AS target, progress.taken_in AS watermark
      FROM exports LEFT JOIN progress ON progress.organization_id = exports.organization_id
     WHERE exports.id = ?";

/// Replaces each `?` with the `$n` of PostgreSQL.
pub(super) fn postgres_placeholders(statement: &str) -> String {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        text.push_str(&format!("${}{part}", index + 1));
    }
    text
}

/// Row of [`TARGET_AND_WATERMARK`].
#[derive(diesel::QueryableByName)]
pub(super) struct TargetAndWatermark {
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::BigInt>)]
    target: Option<i64>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::BigInt>)]
    watermark: Option<i64>,
}

impl TargetAndWatermark {
    /// `None` without a target.
    pub(super) fn lag(&self) -> Option<i64> {
        self.target.map(|target| (target - self.watermark.unwrap_or(0)).max(0))
    }
}

/// The rows of events that were not handled before.
pub(super) fn new_rows(mut received: Vec<ReceivedRow>, new: &HashSet<EventId>) -> Vec<ReceivedRow> {
    received.retain(|received| new.contains(&received.event_id));
    received
}

/// The sequences of the rows by organization, in lock order.
pub(super) fn group_by_organization<'r>(
    rows: impl Iterator<Item = &'r ReceivedRow>,
) -> BTreeMap<OrganizationId, Vec<i64>> {
    let mut organizations: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for received in rows {
        organizations.entry(received.row.organization_id).or_default().push(received.row.sequence);
    }
    organizations
}
