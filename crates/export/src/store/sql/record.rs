//! Database records and their conversion to domain types.

use assay_contracts::export::{ExportFilters, ExportKind, ExportStatus};
use assay_contracts::time::Timestamp;
use assay_platform::db::{DatabaseError, StoredId};
use diesel::prelude::*;

use super::schema::exports;
use crate::domain::job::{Job, JobState, StoredFile};
use crate::domain::lease::{Claim, LeaseOwner};

/// What was requested: a part of the other records.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = exports)]
pub(super) struct ExportRecord {
    id: StoredId,
    organization_id: StoredId,
    kind: String,
    filter_from: Option<i64>,
    filter_to: Option<i64>,
    #[diesel(column_name = filters)]
    further_filters: Option<String>,
}

impl ExportRecord {
    fn corrupt(&self, what: &str) -> DatabaseError {
        DatabaseError::Corrupt(format!("export {}: {what}", self.id.0))
    }

    fn kind(&self) -> Result<ExportKind, DatabaseError> {
        ExportKind::from_name(&self.kind).ok_or_else(|| self.corrupt("unknown kind"))
    }

    /// An error for stored filters that this release does not know.
    fn filters(&self) -> Result<ExportFilters, DatabaseError> {
        let pairs =
            url::form_urlencoded::parse(self.further_filters.as_deref().unwrap_or_default().as_bytes());
        let further = ExportFilters::parse(pairs).map_err(|_| self.corrupt("unknown filters"))?;
        Ok(ExportFilters {
            from: self.filter_from.map(Timestamp::saturating_from_millis),
            to: self.filter_to.map(Timestamp::saturating_from_millis),
            ..further
        })
    }
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = exports)]
pub(super) struct JobRecord {
    #[diesel(embed)]
    export: ExportRecord,
    status: String,
    created_at: i64,
    updated_at: i64,
    object_key: Option<String>,
    file_bytes: Option<i64>,
    file_sha256: Option<String>,
    file_expires_at: Option<i64>,
    missing_evaluations: Option<i64>,
    error_message: Option<String>,
}

impl TryFrom<JobRecord> for Job {
    type Error = DatabaseError;

    fn try_from(record: JobRecord) -> Result<Self, DatabaseError> {
        let export = &record.export;
        let corrupt = |what: &str| export.corrupt(what);
        let status = ExportStatus::from_name(&record.status).ok_or_else(|| corrupt("unknown status"))?;
        let state = match status {
            ExportStatus::Pending => JobState::Pending,
            ExportStatus::Running => JobState::Running,
            ExportStatus::Complete => {
                JobState::Complete(record.file().ok_or_else(|| corrupt("complete without a file"))?)
            }
            ExportStatus::Failed => {
                let message = record.error_message.clone();
                JobState::Failed { message: message.ok_or_else(|| corrupt("failed without a message"))? }
            }
        };
        Ok(Self {
            id: export.id.0.into(),
            organization_id: export.organization_id.0.into(),
            kind: export.kind()?,
            filters: export.filters()?,
            created_at: Timestamp::saturating_from_millis(record.created_at),
            updated_at: Timestamp::saturating_from_millis(record.updated_at),
            state,
        })
    }
}

impl JobRecord {
    fn file(&self) -> Option<StoredFile> {
        Some(StoredFile {
            object_key: self.object_key.clone()?,
            bytes: u64::try_from(self.file_bytes?).ok()?,
            sha256: self.file_sha256.clone()?,
            expires_at: Timestamp::saturating_from_millis(self.file_expires_at?),
            missing_evaluations: self.missing_evaluations.and_then(|count| u64::try_from(count).ok()),
        })
    }
}

#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = exports)]
pub(super) struct ClaimRecord {
    #[diesel(embed)]
    export: ExportRecord,
    attempts: i32,
    released_claims: i32,
}

impl ClaimRecord {
    pub(super) fn into_claim(self, owner: LeaseOwner) -> Result<Claim, DatabaseError> {
        let export = &self.export;
        Ok(Claim {
            id: export.id.0.into(),
            organization_id: export.organization_id.0.into(),
            kind: export.kind()?,
            filters: export.filters()?,
            owner,
            attempt: u32::try_from(self.attempts).map_err(|_| export.corrupt("attempts below 0"))?,
            counted_attempt: u32::try_from(self.attempts - self.released_claims)
                .map_err(|_| export.corrupt("more released claims than attempts"))?,
        })
    }
}

pub(super) fn saturating_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The filters beyond the period, for storage; `None` without any.
pub(super) fn further_filters(filters: &ExportFilters) -> Option<String> {
    let query = ExportFilters { from: None, to: None, ..filters.clone() }.to_query();
    (!query.is_empty()).then_some(query)
}
