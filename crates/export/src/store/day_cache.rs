//! The columns of days that this process has read. An entry is valid for one version of its day, which every reader compares
//! with the database, so a process never answers with old columns.

use std::sync::Arc;

use assay_contracts::ids::OrganizationId;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::domain::day::Day;

/// Entries that the cache is dimensioned for: days of 1,000 evaluations.
const TYPICAL_DAY_BYTES: u64 = 24 * 1_024;

type Key = (OrganizationId, i64, Uuid);

/// Bounded by bytes.
pub struct DayCache(Cache<Key, Arc<Day>, ByBytes>);

#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<Key, Arc<Day>> for ByBytes {
    fn weight(&self, _: &Key, day: &Arc<Day>) -> u64 {
        day.weight()
    }
}

impl DayCache {
    pub fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / TYPICAL_DAY_BYTES).unwrap_or(usize::MAX).max(16);
        Self(Cache::with_weighter(entries, bytes, ByBytes))
    }

    pub(super) fn get(&self, organization_id: OrganizationId, day: i64, version: Uuid) -> Option<Arc<Day>> {
        self.0.get(&(organization_id, day, version))
    }

    pub(super) fn put(&self, organization_id: OrganizationId, day: i64, version: Uuid, columns: Arc<Day>) {
        self.0.insert((organization_id, day, version), columns);
    }
}
