//! The `Authorization` header (RFC 6750, section 2.1).

use assay_platform::auth::ApiKey;

/// The API key of a header `Bearer <key>`; the scheme's case does not matter.
pub(crate) fn bearer_key(header: &str) -> Option<ApiKey> {
    let (scheme, credentials) = header.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    ApiKey::parse(credentials.trim_start()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_scheme_is_case_insensitive_and_others_are_rejected() {
        for header in ["Bearer 0123456789abcdef", "bearer 0123456789abcdef", "BEARER  0123456789abcdef "] {
            assert!(bearer_key(header).is_some_and(|key| key.reveal() == "0123456789abcdef"), "{header}");
        }
        for header in ["", "Bearer", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef", "Bearer short"]
        {
            assert!(bearer_key(header).is_none(), "{header}");
        }
    }
}
