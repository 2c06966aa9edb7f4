//! How long an organization keeps things, where it differs from the rest of the installation.

use assay_contracts::ids::OrganizationId;
use assay_contracts::internal::OrganizationRetention;
use assay_contracts::retention::Period;

/// The periods of one organization; `None`: as the installation has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnPeriods {
    /// Transcripts.
    pub transcripts: Option<Period>,
    /// Evaluations.
    pub evaluations: Option<Period>,
    /// Files of exports.
    pub files: Option<Period>,
}

/// The periods of organizations that have none of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultPeriods {
    /// Transcripts.
    pub transcripts: Period,
    /// Evaluations.
    pub evaluations: Period,
}

/// What is to become of one period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PeriodChange {
    /// It stays.
    #[default]
    Keep,
    /// `Some`: the organization's own; `None`: as the installation has it.
    Set(Option<Period>),
}

/// What is to become of an organization's periods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionChange {
    /// Transcripts.
    pub transcripts: PeriodChange,
    /// Evaluations.
    pub evaluations: PeriodChange,
    /// Files of exports.
    pub files: PeriodChange,
}

/// An organization and its own periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRecord {
    /// The organization.
    pub organization_id: OrganizationId,
    /// Its name.
    pub organization: String,
    /// Its periods.
    pub own: OwnPeriods,
}

impl RetentionChange {
    /// The periods after the change.
    pub fn apply(self, own: OwnPeriods) -> OwnPeriods {
        OwnPeriods {
            transcripts: self.transcripts.apply(own.transcripts),
            evaluations: self.evaluations.apply(own.evaluations),
            files: self.files.apply(own.files),
        }
    }
}

impl PeriodChange {
    fn apply(self, own: Option<Period>) -> Option<Period> {
        match self {
            Self::Keep => own,
            Self::Set(period) => period,
        }
    }
}

impl DefaultPeriods {
    /// What holds for an organization.
    pub fn resolve(self, record: &RetentionRecord) -> OrganizationRetention {
        OrganizationRetention {
            organization_id: record.organization_id,
            transcripts: record.own.transcripts.unwrap_or(self.transcripts),
            evaluations: record.own.evaluations.unwrap_or(self.evaluations),
            files: record.own.files,
        }
    }
}
