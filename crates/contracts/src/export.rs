//! Evaluation exports, and the body of `POST /v1/evaluations/exports`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::evaluations::read_filters;
use crate::ids::ExportId;
use crate::json::{ObjectReader, ValidationErrors, parse_whole_tree};
use crate::named_enum::named_enum;
use crate::time::Timestamp;
use crate::validation::BodyError;

pub use crate::evaluations::EvaluationFilters as ExportFilters;

/// An export job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Export {
    /// Export id.
    #[schema(value_type = String, example = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")]
    pub id: ExportId,
    /// What is exported.
    pub kind: ExportKind,
    /// Always `csv`.
    pub format: ExportFormat,
    /// State of the job.
    pub status: ExportStatus,
    /// The filters, as sent.
    pub filters: ExportFilters,
    /// When the export was created, epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub created_at: Timestamp,
    /// When the job last changed its state, epoch milliseconds.
    #[schema(value_type = i64, example = 1_763_600_000_000_i64)]
    pub updated_at: Timestamp,
    /// Signed address of the file, generated for each response; only when `status` is `complete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri", nullable = false)]
    pub download_url: Option<String>,
    /// What went wrong; only when `status` is `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error_message: Option<String>,
    /// Whether the file can still be downloaded; only when `status` is `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<FileStatus>, nullable = false)]
    pub file_status: Option<FileStatus>,
    /// When the file is or was removed, epoch milliseconds; only when `status` is `complete`, and absent while files are kept
    /// for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, nullable = false, example = 1_766_192_000_000_i64)]
    pub file_expires_at: Option<Timestamp>,
    /// Whether the file is known to hold every evaluation that was committed before the export was created; only when
    /// `status` is `complete`. When `false`, `missing_evaluations` has an upper bound of the missing ones, or is absent
    /// because they could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub evaluations_complete: Option<bool>,
    /// Evaluations of the organization that had not arrived when the file was written, regardless of the filters: an upper
    /// bound of the missing rows. Only when `status` is `complete`; absent when they could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, example = 0)]
    pub missing_evaluations: Option<u64>,
}

/// Whether the file of a complete export can be downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// `download_url` is its address.
    Available,
    /// Its retention period has passed: `download_url` is absent.
    Expired,
}

named_enum!(
    /// What is exported.
    ExportKind {
        /// AXIS scores, reasons and facts, one row per ticket. `axis_band` is the band of the conversation.
        Axis = "axis",
        /// The resolution audit, one row per ticket.
        ResolutionAudit = "resolution_audit",
    }
);

named_enum!(
    /// The file's format; the specification has one.
    #[derive(Default)]
    ExportFormat {
        /// RFC 4180.
        #[default]
        Csv = "csv",
    }
);

named_enum!(
    /// State of an export job: `pending → running → complete | failed`, nothing else.
    ExportStatus {
        /// Queued.
        Pending = "pending",
        /// A worker writes the file.
        Running = "running",
        /// The file can be downloaded.
        Complete = "complete",
        /// `error_message` says why.
        Failed = "failed",
    }
);

/// A checked body of `POST /v1/evaluations/exports`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewExport {
    /// What is exported.
    pub kind: ExportKind,
    /// Always `csv`.
    pub format: ExportFormat,
    /// Which evaluations: the same filters as those of the list.
    pub filters: ExportFilters,
}

impl NewExport {
    /// Reads and checks a request body. `format`, `filters` and each filter are optional.
    ///
    /// # Errors
    /// [`BodyError`] with all validation errors.
    pub fn parse(body: &[u8]) -> Result<Self, BodyError> {
        let tree = parse_whole_tree(body)?;
        let mut errors = ValidationErrors::default();
        let export = ObjectReader::new(tree, "", &mut errors).and_then(|mut object| {
            let kind = object.required_choice("kind");
            let format = object.optional_choice("format").unwrap_or_default();
            let filters = match object.take("filters") {
                Some(value) => read_filters(value, "/filters", object.errors()),
                None => Some(ExportFilters::default()),
            };
            Some(Self { kind: kind?, format, filters: filters? })
        });
        errors.finish(export)
    }
}

/// Request to create an export.
// The OpenAPI schema of the body that `NewExport::parse` reads.
#[derive(ToSchema)]
#[allow(dead_code, reason = "documentation only: never built")]
pub struct NewExportRequest {
    /// What is exported.
    kind: ExportKind,
    /// Only `csv` is supported.
    #[schema(default = "csv")]
    format: Option<ExportFormat>,
    /// Filters; all evaluations when absent.
    filters: Option<ExportFilters>,
}

/// Response of the download operation when JSON is preferred.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DownloadAddress {
    /// Signed address of the file; needs no API key.
    #[schema(format = "uri")]
    pub download_url: String,
}
