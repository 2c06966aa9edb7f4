//! Permits for downloads: a download keeps connections and a file open until its client has read it. A permit lasts until the
//! body is sent or the connection ends.

use std::sync::Arc;

use assay_contracts::ids::{ExportId, OrganizationId};
use assay_platform::web::{ShareInUse, Shares};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum numbers of simultaneous downloads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DownloadLimits {
    /// Of this process; one organization has at most half of them.
    pub(crate) all: usize,
    /// Of one file.
    pub(crate) per_export: usize,
}

/// The export that has a file, and its organization.
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
    all: Arc<Semaphore>,
    of_exports: Shares<ExportId>,
    of_organizations: Shares,
}

/// The right to one download.
pub(crate) struct DownloadPermit {
    _of_export: ShareInUse<ExportId>,
    _of_organization: ShareInUse,
    _permit: OwnedSemaphorePermit,
}

impl DownloadPermits {
    pub(crate) fn new(limits: DownloadLimits) -> Self {
        Self {
            all: Arc::new(Semaphore::new(limits.all)),
            of_exports: Shares::new(limits.per_export),
            of_organizations: Shares::half_of(limits.all),
        }
    }

    /// # Errors
    /// At a limit; nothing waits.
    pub(crate) fn acquire(&self, owner: FileOwner) -> Result<DownloadPermit, DownloadsBusy> {
        let Self { all, of_exports, of_organizations } = self;
        let of_export = of_exports.take_one(owner.export_id);
        let of_organization = of_organizations.take_one(owner.organization_id);
        Ok(DownloadPermit {
            _of_export: of_export.ok_or(DownloadsBusy::File(of_exports.limit()))?,
            _of_organization: of_organization.ok_or(DownloadsBusy::Organization(of_organizations.limit()))?,
            _permit: Arc::clone(all).try_acquire_owned().map_err(|_| DownloadsBusy::All)?,
        })
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
}
