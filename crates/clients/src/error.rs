//! Errors of calls to services.

use assay_contracts::problem::Problem;
use assay_platform::web::WebError;

/// A call failed. The text is for the log, never for a response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The service is unreachable or did not respond in time. A retry may succeed.
    #[error("{service} cannot be reached: {reason}")]
    Unreachable {
        /// Name of the service.
        service: &'static str,
        /// Cause.
        reason: String,
    },
    /// The service responded with an error status.
    #[error("{service} answered {status}{}", problem.as_ref().map(|problem| format!(": {}", problem.code.as_str())).unwrap_or_default())]
    ErrorStatus {
        /// Name of the service.
        service: &'static str,
        /// HTTP status code.
        status: u16,
        /// Problem object of the response, if any.
        problem: Option<Box<Problem>>,
    },
    /// The call cannot be made: its URL, body or service token cannot be built.
    #[error("the call of {service} cannot be made: {reason}")]
    InvalidRequest {
        /// Name of the service.
        service: &'static str,
        /// Cause.
        reason: String,
    },
    /// The response cannot be decoded: caller and service disagree about its schema.
    #[error("the response of {service} cannot be read: {reason}")]
    InvalidResponse {
        /// Name of the service.
        service: &'static str,
        /// Cause.
        reason: String,
    },
}

impl ClientError {
    /// Whether a retry may succeed without a repair.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            // 401 refers to our service token: clock skew, which is temporary.
            Self::ErrorStatus { status, .. } => matches!(status, 401 | 408 | 429 | 500..=599),
            Self::InvalidRequest { .. } | Self::InvalidResponse { .. } => false,
        }
    }
}

/// The response to a request that needed the call.
impl From<ClientError> for WebError {
    fn from(error: ClientError) -> Self {
        if error.is_transient() { Self::unavailable(&error) } else { Self::internal(&error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_statuses_are_transient() {
        let refused = |status| ClientError::ErrorStatus { service: "ingest", status, problem: None };
        let transient: Vec<u16> = [400, 401, 403, 404, 408, 409, 429, 500, 503]
            .into_iter()
            .filter(|status| refused(*status).is_transient())
            .collect();
        assert_eq!(transient, [401, 408, 429, 500, 503]);
    }
}
