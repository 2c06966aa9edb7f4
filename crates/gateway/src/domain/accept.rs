//! Content negotiation of the download operation: a redirect, or the address as JSON (RFC 9110, section 12.5.1).

/// Whether an `Accept` header prefers JSON: it lists JSON with a quality that no other media range exceeds. Neither `*/*`
/// alone nor a missing header prefers it.
pub(crate) fn prefers_json(accept: &str) -> bool {
    let mut json = 0.0_f32;
    let mut other = 0.0_f32;
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts
            .find_map(|parameter| parameter.strip_prefix("q=").or_else(|| parameter.strip_prefix("Q=")))
            .map_or(1.0, |value| value.parse::<f32>().unwrap_or(0.0));
        if media_type == "application/json" {
            json = json.max(quality);
        } else if !media_type.is_empty() {
            other = other.max(quality);
        }
    }
    json > 0.0 && json >= other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_preferred_by_explicit_media_type_and_quality() {
        let cases = [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json, text/plain, */*", true),
            ("application/json;q=0.9, */*;q=0.8", true),
            ("text/csv;q=0.2, application/json;q=0.5", true),
            ("", false),
            ("*/*", false),
            ("text/csv", false),
            ("text/html, application/json;q=0.9", false),
            ("application/json;q=0", false),
            ("application/json;q=0.5, */*", false),
            ("application/problem+json", false),
        ];
        for (accept, expected) in cases {
            assert_eq!(prefers_json(accept), expected, "{accept}");
        }
    }
}
