//! Permits for downloads: a download keeps connections and a file open until its client has read it. A permit lasts until the
//! body is sent or the connection ends.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_platform::runtime::LockExt as _;

/// One organization may have at most `DownloadLimits::all` divided by this number.
const ORGANIZATION_DIVISOR: usize = 2;

/// Maximum numbers of simultaneous downloads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DownloadLimits {
    /// Of this process; one organization has at most half of them.
    pub(crate) all: usize,
    /// Of one file.
    pub(crate) per_export: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileOwner {
    pub(crate) export_id: ExportId,
    pub(crate) organization_id: OrganizationId,
}

/// The limit that is reached, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DownloadsBusy {
    #[error("the file is downloaded {0} times at once")]
    File(usize),
    #[error("the organization downloads {0} files at once")]
    Organization(usize),
    #[error("too many files are downloaded at once")]
    All,
}

pub(crate) struct DownloadPermits {
    limits: DownloadLimits,
    running: Arc<Mutex<Running>>,
}

#[derive(Default)]
struct Running {
    all: usize,
    per_export: HashMap<ExportId, usize>,
    per_organization: HashMap<OrganizationId, usize>,
}

/// The right to one download.
pub(crate) struct DownloadPermit {
    owner: FileOwner,
    running: Arc<Mutex<Running>>,
}

impl DownloadPermits {
    pub(crate) fn new(limits: DownloadLimits) -> Self {
        Self { limits, running: Arc::default() }
    }

    /// # Errors
    /// At a limit; nothing waits.
    pub(crate) fn acquire(&self, owner: FileOwner) -> Result<DownloadPermit, DownloadsBusy> {
        let DownloadLimits { all, per_export } = self.limits;
        let per_organization = (all / ORGANIZATION_DIVISOR).max(1);
        let mut running = lock(&self.running);
        if running.per_export.get(&owner.export_id).is_some_and(|count| *count >= per_export) {
            return Err(DownloadsBusy::File(per_export));
        }
        if running
            .per_organization
            .get(&owner.organization_id)
            .is_some_and(|count| *count >= per_organization)
        {
            return Err(DownloadsBusy::Organization(per_organization));
        }
        if running.all >= all {
            return Err(DownloadsBusy::All);
        }
        running.all += 1;
        *running.per_export.entry(owner.export_id).or_default() += 1;
        *running.per_organization.entry(owner.organization_id).or_default() += 1;
        Ok(DownloadPermit { owner, running: self.running.clone() })
    }
}

impl Drop for DownloadPermit {
    fn drop(&mut self) {
        let mut running = lock(&self.running);
        running.all -= 1;
        decrement(&mut running.per_export, self.owner.export_id);
        decrement(&mut running.per_organization, self.owner.organization_id);
    }
}

fn lock(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.locked()
}

fn decrement<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    fn file_of(organization_id: OrganizationId) -> FileOwner {
        FileOwner { export_id: new_id(), organization_id }
    }

    #[test]
    fn one_file_or_organization_cannot_take_all_downloads() {
        let permits = DownloadPermits::new(DownloadLimits { all: 6, per_export: 2 });
        let (greedy, other) = (new_id(), new_id());
        let file = file_of(greedy);
        let held = [permits.acquire(file), permits.acquire(file), permits.acquire(file_of(greedy))];
        assert!(held.iter().all(Result::is_ok));
        let refused = |owner| permits.acquire(owner).map(drop).unwrap_err();
        assert_eq!(refused(file), DownloadsBusy::File(2));
        assert_eq!(refused(file_of(greedy)), DownloadsBusy::Organization(3));
        let others: Vec<_> = (0..3).map(|_| permits.acquire(file_of(other)).ok()).collect();
        assert!(others.iter().all(Option::is_some));
        assert_eq!(refused(file_of(new_id())), DownloadsBusy::All);
    }

    #[test]
    fn ended_download_frees_its_permit() {
        let permits = DownloadPermits::new(DownloadLimits { all: 2, per_export: 1 });
        let file = file_of(new_id());
        for _ in 0..3 {
            assert!(permits.acquire(file).is_ok());
        }
        let running = lock(&permits.running);
        assert_eq!((running.all, running.per_export.len(), running.per_organization.len()), (0, 0, 0));
    }
}
