//! How far the read model is, and how far an export wants it to be. The same statements for both databases.

use std::collections::{BTreeMap, HashSet};

use assay_contracts::ids::{EventId, OrganizationId};

use super::ReceivedRow;

/// What an export waits for, and what is there.
pub(super) const AWAITED: &str = "
    SELECT exports.awaited_evaluations AS awaited, progress.taken_in AS taken_in
      FROM exports LEFT JOIN progress ON progress.organization_id = exports.organization_id
     WHERE exports.id = ?";

/// The statement with the placeholders that PostgreSQL wants.
pub(super) fn numbered(statement: &str) -> String {
    let mut parts = statement.split('?');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        text.push_str(&format!("${}{part}", index + 1));
    }
    text
}

/// The answer to [`AWAITED`].
#[derive(diesel::QueryableByName)]
pub(super) struct Awaited {
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::BigInt>)]
    awaited: Option<i64>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::BigInt>)]
    taken_in: Option<i64>,
}

impl Awaited {
    /// How many evaluations are missing; `None` when it is not known how many there shall be.
    pub(super) fn missing(&self) -> Option<i64> {
        self.awaited.map(|awaited| (awaited - self.taken_in.unwrap_or(0)).max(0))
    }
}

/// The rows whose events were not handled before, each event once: a batch may hold one twice, and a row that is counted
/// twice would let an export go without another one.
pub(super) fn unhandled(received: Vec<ReceivedRow>, mut new: HashSet<EventId>) -> Vec<ReceivedRow> {
    received.into_iter().filter(|received| new.remove(&received.event_id)).collect()
}

/// The numbers of these rows by organization, in the order in which the organizations' records are locked.
pub(super) fn by_organization<'r>(
    rows: impl Iterator<Item = &'r ReceivedRow>,
) -> BTreeMap<OrganizationId, Vec<Option<i64>>> {
    let mut organizations: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for received in rows {
        organizations.entry(received.row.organization_id).or_default().push(received.row.sequence);
    }
    organizations
}
