//! Retention periods: the defaults of the installation and the overrides of organizations.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::RetentionPeriod;

/// The overrides of one organization; `None`: the default applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionOverrides {
    pub transcripts: Option<RetentionPeriod>,
    pub evaluations: Option<RetentionPeriod>,
    pub files: Option<RetentionPeriod>,
}

/// The retention periods of organizations without overrides. There is none for files here: export-worker has it in its own
/// settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultRetention {
    pub transcripts: RetentionPeriod,
    pub evaluations: RetentionPeriod,
}

/// The change of one override.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OverrideChange {
    #[default]
    Keep,
    /// `None` removes the override.
    Set(Option<RetentionPeriod>),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionChange {
    pub transcripts: OverrideChange,
    pub evaluations: OverrideChange,
    pub files: OverrideChange,
}

/// An organization with its overrides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRecord {
    pub organization_id: OrganizationId,
    pub organization: String,
    pub overrides: RetentionOverrides,
}

impl RetentionChange {
    pub fn apply(self, overrides: RetentionOverrides) -> RetentionOverrides {
        RetentionOverrides {
            transcripts: self.transcripts.apply(overrides.transcripts),
            evaluations: self.evaluations.apply(overrides.evaluations),
            files: self.files.apply(overrides.files),
        }
    }
}

impl OverrideChange {
    fn apply(self, current: Option<RetentionPeriod>) -> Option<RetentionPeriod> {
        match self {
            Self::Keep => current,
            Self::Set(period) => period,
        }
    }
}

impl DefaultRetention {
    /// The retention periods of an organization; `files` is only its override (`None`: export-worker applies its default).
    pub fn resolve(self, record: &RetentionRecord) -> OrganizationRetention {
        OrganizationRetention {
            organization_id: record.organization_id,
            transcripts: record.overrides.transcripts.unwrap_or(self.transcripts),
            evaluations: record.overrides.evaluations.unwrap_or(self.evaluations),
            files: record.overrides.files,
        }
    }
}
