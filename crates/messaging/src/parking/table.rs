//! Runs the statements of parked events on either database.

use assay_contracts::ids::OrganizationId;
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, on_database};

#[cfg(feature = "distributed")]
use super::postgres;
use super::rows::{Claim, Key, Settled, SmallBacklogs};
use super::{Parking, sqlite};
use crate::envelope::OutgoingEvent;

impl Parking {
    /// Parks events. Those that are parked already stay as they are.
    pub(super) async fn park(&self, events: Vec<OutgoingEvent>) -> Result<(), DatabaseError> {
        on_database!(self, write, park(&events))
    }

    /// At most `limit` organizations with parked events: those after `after`, then from the first one on.
    pub(super) async fn organizations(
        &self,
        after: OrganizationId,
        limit: usize,
    ) -> Result<Vec<OrganizationId>, DatabaseError> {
        on_database!(self, read, organizations(after, limit))
    }

    /// At most `limit` organizations with a small backlog, among some after `after`.
    pub(super) async fn small_backlogs(
        &self,
        after: OrganizationId,
        limit: usize,
    ) -> Result<SmallBacklogs, DatabaseError> {
        on_database!(self, read, small_backlogs(after, limit))
    }

    /// Claims at most `limit` events of these organizations, which take turns in this order. No two claims get the same event
    /// while a lease lasts.
    pub(super) async fn claim(
        &self,
        organizations: Vec<OrganizationId>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Claim, DatabaseError> {
        on_database!(self, write, claim(&organizations, now, limit))
    }

    /// Extends the leases of events that are still being handled.
    pub(super) async fn renew(&self, keys: Vec<Key>, now: Timestamp) -> Result<(), DatabaseError> {
        on_database!(self, write, renew(&keys, now))
    }

    /// Records the results of claimed events in one transaction.
    pub(super) async fn settle(&self, settled: Settled) -> Result<(), DatabaseError> {
        on_database!(self, write, settle(&settled))
    }

    /// The number of parked events, counted up to `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count(&self, limit: usize) -> Result<u64, DatabaseError> {
        on_database!(self, read, count(limit))
    }
}
