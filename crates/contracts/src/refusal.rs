//! Refused imports: the gateway reports them, ingest keeps the latest of each organization, the console lists them.

use serde::{Deserialize, Serialize};

use crate::ids::RefusalId;
use crate::problem::{Problem, ProblemCode};
use crate::time::{DAY_MILLIS, Timestamp};
use crate::validation::{FieldError, shortened};

/// Maximum number of refusals that are kept of an organization, and that are in one report.
pub const MAX_REFUSALS: usize = 100;

/// How long a refusal is kept, in milliseconds.
pub const REFUSAL_RETENTION_MILLIS: i64 = 30 * DAY_MILLIS;

/// Maximum number of field errors in a refusal. The response to the caller has up to `MAX_REPORTED_ERRORS`.
const MAX_ERRORS: usize = 5;

/// Maximum length of a pointer, in characters; those of errors in imports are shorter.
const MAX_POINTER_CHARS: usize = 100;

/// Maximum length of an explanation, in characters.
const MAX_DETAIL_CHARS: usize = 200;

/// The problems that are kept: those that sending the same import again does not solve. A duplicate is none of them: its
/// conversation is stored, and whoever imports a file a second time would displace all other refusals.
const KEPT_CODES: [ProblemCode; 7] = [
    ProblemCode::MalformedJson,
    ProblemCode::InvalidRequest,
    ProblemCode::AgentMismatch,
    ProblemCode::UnknownAgent,
    ProblemCode::PayloadTooLarge,
    ProblemCode::UnsupportedMediaType,
    ProblemCode::IdempotencyConflict,
];

/// An import that was refused, and why. It says what the problem said to the caller, and has no other content of the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRefusal {
    /// Made by the gateway: a refusal that is reported twice is kept once.
    pub id: RefusalId,
    /// When the caller got the problem.
    pub refused_at: Timestamp,
    /// The kind of problem.
    pub code: ProblemCode,
    /// Explanation of this occurrence.
    pub detail: String,
    /// The first field errors.
    pub errors: Vec<FieldError>,
    /// Number of further field errors.
    pub omitted_errors: usize,
}

/// Gateway → ingest: refusals of the token's organization. Ingest → console: its latest refusals, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRefusals {
    /// At most [`MAX_REFUSALS`].
    pub refusals: Vec<ImportRefusal>,
}

impl ImportRefusal {
    /// The refusal of an import by a problem, with texts of bounded length. `None` when it is not kept: a duplicate, or a
    /// refusal after which the caller can send the same again (a limit, a slow body, an outage).
    pub fn of(problem: &Problem, id: RefusalId, refused_at: Timestamp) -> Option<Self> {
        if !KEPT_CODES.contains(&problem.code) {
            return None;
        }
        let errors = problem.errors.iter().take(MAX_ERRORS).map(|error| FieldError {
            pointer: shortened(&error.pointer, MAX_POINTER_CHARS),
            detail: shortened(&error.detail, MAX_DETAIL_CHARS),
        });
        Some(Self {
            id,
            refused_at,
            code: problem.code,
            detail: shortened(problem.detail.as_deref().unwrap_or_default(), MAX_DETAIL_CHARS),
            errors: errors.collect(),
            omitted_errors: problem.errors.len().saturating_sub(MAX_ERRORS),
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn refusal(problem: &Problem) -> Option<ImportRefusal> {
        ImportRefusal::of(problem, RefusalId::from(Uuid::from_u128(1)), Timestamp::MIN)
    }

    #[test]
    fn refusal_has_bounded_texts_and_counts_the_errors_it_omits() {
        let error = FieldError { pointer: "/p".repeat(500), detail: "d".repeat(500) };
        let problem = Problem::new(ProblemCode::InvalidRequest, "x".repeat(500)).with_errors(vec![error; 20]);
        let refusal = refusal(&problem).unwrap();
        assert_eq!((refusal.errors.len(), refusal.omitted_errors), (5, 15));
        assert_eq!(refusal.detail.chars().count(), MAX_DETAIL_CHARS + 1);
        let texts = (refusal.errors[0].pointer.chars().count(), refusal.errors[0].detail.chars().count());
        assert_eq!(texts, (MAX_POINTER_CHARS + 1, MAX_DETAIL_CHARS + 1));
    }

    #[test]
    fn duplicates_and_what_may_be_sent_again_are_not_kept() {
        for code in [
            ProblemCode::DuplicateImport,
            ProblemCode::RateLimited,
            ProblemCode::RequestTimeout,
            ProblemCode::Unavailable,
            ProblemCode::Internal,
        ] {
            assert_eq!(refusal(&Problem::new(code, "")), None, "{code:?}");
        }
        assert!(refusal(&Problem::new(ProblemCode::UnknownAgent, "")).is_some());
    }
}
