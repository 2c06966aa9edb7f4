//! HTTP responses of the use cases' errors.

use actix_web::http::header::{CACHE_CONTROL, RETRY_AFTER};
use assay_contracts::problem::ProblemCode;
use assay_platform::db::idempotency;
use assay_platform::web::WebError;

use super::downloads::CACHE_POLICY;
use crate::app::create_export::CreateExportError;
use crate::app::download_permits::DownloadsBusy;
use crate::app::list_exports::ListExportsError;
use crate::app::open_file::OpenFileError;
use crate::app::read_export::ReadExportError;

/// Suggested polling interval of a pending export, in seconds.
const POLLING_INTERVAL_SECONDS: &str = "2";

/// Suggested pause of a client whose organization has too many open exports or simultaneous downloads, in seconds.
const OPEN_EXPORTS_RETRY_AFTER_SECONDS: &str = "10";
const DOWNLOAD_RETRY_AFTER_SECONDS: &str = "10";

impl From<CreateExportError> for WebError {
    fn from(error: CreateExportError) -> Self {
        match error {
            CreateExportError::IdempotencyConflict => idempotency::conflict().into(),
            CreateExportError::TooManyOpen(limit) => Self::new(
                ProblemCode::TooManyExports,
                format!("the limit is {limit}: wait until one is complete"),
            )
            .with_header(RETRY_AFTER, OPEN_EXPORTS_RETRY_AFTER_SECONDS),
            CreateExportError::Response(cause) => Self::internal(&cause),
            CreateExportError::Event(cause) => Self::internal(&cause),
            CreateExportError::Database(cause) => cause.into(),
        }
    }
}

impl From<ListExportsError> for WebError {
    fn from(error: ListExportsError) -> Self {
        match error {
            ListExportsError::Cursor(_) => Self::new(
                ProblemCode::InvalidCursor,
                "use `page_info.next_cursor` of an earlier page as it is, or leave the cursor out",
            ),
            ListExportsError::Database(cause) => cause.into(),
        }
    }
}

impl From<ReadExportError> for WebError {
    fn from(error: ReadExportError) -> Self {
        match error {
            ReadExportError::NotFound => {
                Self::new(ProblemCode::ExportNotFound, "your organization has no export with this id")
            }
            ReadExportError::NotReady => {
                Self::new(ProblemCode::ExportNotReady, "ask again when its status is `complete`")
                    .with_header(RETRY_AFTER, POLLING_INTERVAL_SECONDS)
            }
            ReadExportError::Failed(message) => Self::new(ProblemCode::ExportFailed, message),
            ReadExportError::Gone => file_gone(),
            ReadExportError::Database(cause) => cause.into(),
        }
    }
}

impl From<OpenFileError> for WebError {
    fn from(error: OpenFileError) -> Self {
        let response = match error {
            OpenFileError::Address(error) => Self::new(ProblemCode::InvalidSignature, error.to_string()),
            OpenFileError::Gone => file_gone(),
            OpenFileError::Busy(busy) => too_many_downloads(busy),
            // A failure of the network or the disk may be transient.
            OpenFileError::Objects(cause) => Self::unavailable(&cause),
            OpenFileError::Database(cause) => cause.into(),
        };
        response.with_header(CACHE_CONTROL, CACHE_POLICY)
    }
}

fn too_many_downloads(busy: DownloadsBusy) -> WebError {
    let (code, detail) = match busy {
        DownloadsBusy::File(count) => (
            ProblemCode::TooManyDownloads,
            format!("this file is downloaded {count} times at the moment: wait until a download has ended"),
        ),
        DownloadsBusy::Organization(count) => (
            ProblemCode::TooManyDownloads,
            format!(
                "your organization downloads {count} files at the moment: wait until a download has ended"
            ),
        ),
        DownloadsBusy::All => (
            ProblemCode::Unavailable,
            "too many files are downloaded at the moment: try again later".to_owned(),
        ),
    };
    WebError::new(code, detail).with_header(RETRY_AFTER, DOWNLOAD_RETRY_AFTER_SECONDS)
}

fn file_gone() -> WebError {
    WebError::new(
        ProblemCode::ExportFileGone,
        "its retention time has passed: create the export again for a new file",
    )
}
