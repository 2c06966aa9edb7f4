//! Caches the columns of days that this process has read. The key has the version of the day: readers look up the version that
//! the database has, so they never get old columns.

use std::sync::Arc;

use assay_contracts::ids::OrganizationId;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use uuid::Uuid;

use crate::domain::day::Day;

/// Estimated size of an entry: a day of 1,000 evaluations.
const TYPICAL_DAY_BYTES: u64 = 24 * 1_024;

/// An entry larger than its shard is never kept; quick_cache has four shards per processor by default, too small for large days.
const SHARDS: usize = 2;

type Key = (OrganizationId, i64, Uuid);

/// Bounded by bytes.
pub struct DayCache(Cache<Key, Arc<Day>, ByteWeighter>);

#[derive(Debug, Clone)]
struct ByteWeighter;

impl Weighter<Key, Arc<Day>> for ByteWeighter {
    fn weight(&self, _: &Key, day: &Arc<Day>) -> u64 {
        day.weight()
    }
}

impl DayCache {
    pub fn new(bytes: u64) -> Self {
        let entries = usize::try_from(bytes / TYPICAL_DAY_BYTES).unwrap_or(usize::MAX).max(16);
        let options = OptionsBuilder::new()
            .estimated_items_capacity(entries)
            .weight_capacity(bytes)
            .shards(SHARDS)
            .build();
        Self(match options {
            Ok(options) => Cache::with_options(
                options,
                ByteWeighter,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // `build` fails only when a capacity is not set.
            Err(_) => Cache::with_weighter(entries, bytes, ByteWeighter),
        })
    }

    pub(super) fn get(&self, organization_id: OrganizationId, day: i64, version: Uuid) -> Option<Arc<Day>> {
        self.0.get(&(organization_id, day, version))
    }

    pub(super) fn put(&self, organization_id: OrganizationId, day: i64, version: Uuid, columns: Arc<Day>) {
        self.0.insert((organization_id, day, version), columns);
    }
}

#[cfg(test)]
mod tests {
    use assay_contracts::time::Timestamp;
    use assay_platform::runtime::new_id;

    use super::*;
    use crate::domain::day::{DayBuilder, PackedScores, Texts};
    use crate::domain::facets::Facets;

    #[test]
    fn day_of_a_third_of_the_cache_is_kept() {
        let mut builder = DayBuilder::default();
        for _ in 0..100_000 {
            let texts = Texts::new("custom".to_owned(), None, &[]);
            builder.push(Timestamp::MIN, Facets::default(), PackedScores::default(), &texts);
        }
        let day = Arc::new(builder.finish());
        // Large enough that quick_cache would use its default number of shards.
        let cache = DayCache::new(3 * day.weight());
        let (organization, version): (OrganizationId, Uuid) = (new_id(), new_id());
        cache.put(organization, 7, version, day.clone());
        assert_eq!(cache.get(organization, 7, version), Some(day));
    }
}
