//! What can go wrong with a call to a service.

use assay_contracts::problem::Problem;

/// A call failed. The text is for the log, never for an answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service cannot be reached or did not answer in time. Trying again later may help.
    #[error("{service} cannot be reached: {reason}")]
    Unreachable {
        /// The service.
        service: &'static str,
        /// Why.
        reason: String,
    },
    /// The service answered with an error.
    #[error("{service} answered {status}{}", problem.as_ref().map(|problem| format!(": {}", problem.code.as_str())).unwrap_or_default())]
    Refused {
        /// The service.
        service: &'static str,
        /// HTTP status code.
        status: u16,
        /// Its problem object, if it sent one.
        problem: Option<Box<Problem>>,
    },
    /// The service answered something that cannot be read: the two sides disagree.
    #[error("the answer of {service} cannot be read: {reason}")]
    Unreadable {
        /// The service.
        service: &'static str,
        /// Why.
        reason: String,
    },
}

impl ClientError {
    /// Whether the same call may succeed later without anybody mending anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            // 401 is our own token's: clocks that disagree agree again after a while.
            Self::Refused { status, .. } => matches!(status, 401 | 408 | 429 | 500..=599),
            Self::Unreadable { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_end_by_itself_is_transient() {
        let refused = |status| ClientError::Refused { service: "ingest", status, problem: None };
        let transient: Vec<u16> = [400, 401, 403, 404, 408, 409, 429, 500, 503]
            .into_iter()
            .filter(|status| refused(*status).is_transient())
            .collect();
        assert_eq!(transient, [401, 408, 429, 500, 503]);
    }
}
