//! The `Authorization` header (RFC 6750, section 2.1).

use assay_platform::auth::ApiKey;

/// The API key of a header `Bearer <key>`; the scheme's case does not matter. `None` also for a mistyped key, which need not be
/// looked up.
pub(crate) fn bearer_key(header: &str) -> Option<ApiKey> {
    let (scheme, credentials) = header.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    ApiKey::parse(credentials.trim_start()).ok().filter(|key| !key.is_mistyped())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHOSEN: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn bearer_scheme_is_case_insensitive_and_others_are_rejected() {
        for header in [format!("Bearer {CHOSEN}"), format!("bearer {CHOSEN}"), format!("BEARER  {CHOSEN} ")] {
            assert!(bearer_key(&header).is_some_and(|key| key.reveal() == CHOSEN), "{header}");
        }
        for header in ["", "Bearer", "Bearer ", &format!("Basic {CHOSEN}"), CHOSEN, "Bearer short"] {
            assert!(bearer_key(header).is_none(), "{header}");
        }
    }

    #[test]
    fn generated_key_needs_its_checksum() {
        let key = ApiKey::generate().unwrap();
        let header = format!("Bearer {}", key.reveal());
        assert!(bearer_key(&header).is_some());
        assert!(bearer_key(&header[..header.len() - 1]).is_none());
        assert!(bearer_key(&format!("Bearer asy_{CHOSEN}")).is_none());
    }
}
