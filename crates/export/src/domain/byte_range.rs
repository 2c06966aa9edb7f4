//! Byte ranges and conditions of a download (RFC 9110, sections 13 and 14).

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedRange {
    /// The whole file: no range, or one that may be ignored (RFC 9110, section 14.2): malformed, another unit, several
    /// ranges.
    Full,
    /// Not empty and inside the file.
    Partial(Range<u64>),
    /// Outside the file.
    Unsatisfiable,
}

/// Parses a `Range` header for a file of `length` bytes.
pub fn parse_range(header: Option<&str>, length: u64) -> RequestedRange {
    let Some(range) = header.and_then(|header| strip_unit(header.trim())) else {
        return RequestedRange::Full;
    };
    let Some((first, last)) = range.trim().split_once('-') else { return RequestedRange::Full };
    match (parse_bound(first), parse_bound(last)) {
        (Bound::Absent, Bound::At(suffix)) => partial(length.saturating_sub(suffix)..length),
        (Bound::At(first), Bound::Absent) => partial(first..length),
        (Bound::At(first), Bound::At(last)) if first <= last => {
            partial(first..length.min(last.saturating_add(1)))
        }
        _ => RequestedRange::Full,
    }
}

/// Whether `If-None-Match` contains the entity tag (RFC 9110, section 13.1.2: weak comparison).
pub fn if_none_match_matches(header: &str, etag: &str) -> bool {
    header.trim() == "*"
        || header.split(',').map(str::trim).any(|tag| tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Whether `If-Range` allows a partial response (RFC 9110, section 13.1.5: strong comparison). A date never
/// matches: files have no `Last-Modified`.
pub fn if_range_matches(if_range: Option<&str>, etag: &str) -> bool {
    if_range.is_none_or(|tag| tag.trim() == etag)
}

fn strip_unit(header: &str) -> Option<&str> {
    let (unit, range) = header.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(range)
}

fn partial(range: Range<u64>) -> RequestedRange {
    if range.is_empty() { RequestedRange::Unsatisfiable } else { RequestedRange::Partial(range) }
}

enum Bound {
    Absent,
    At(u64),
    Malformed,
}

fn parse_bound(text: &str) -> Bound {
    let text = text.trim();
    if text.is_empty() {
        return Bound::Absent;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Bound::Malformed;
    }
    // A number that overflows is beyond the end of every file.
    Bound::At(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_range_is_parsed_per_rfc_9110() {
        use RequestedRange::{Full, Partial, Unsatisfiable};
        let cases = [
            (None, Full),
            (Some("bytes=0-0"), Partial(0..1)),
            (Some("bytes=2-5"), Partial(2..6)),
            (Some("Bytes = 2-5"), Partial(2..6)),
            (Some("bytes=2-"), Partial(2..10)),
            (Some("bytes=-3"), Partial(7..10)),
            (Some("bytes=-100"), Partial(0..10)),
            (Some("bytes=5-99999999999999999999999"), Partial(5..10)),
            (Some("bytes=10-"), Unsatisfiable),
            (Some("bytes=99999999999999999999999-"), Unsatisfiable),
            (Some("bytes=-0"), Unsatisfiable),
            (Some("bytes=5-2"), Full),
            (Some("bytes=a-b"), Full),
            (Some("bytes=-"), Full),
            (Some("bytes=0-1,4-5"), Full),
            (Some("lines=0-1"), Full),
            (Some("bytes"), Full),
        ];
        for (header, expected) in cases {
            assert_eq!(parse_range(header, 10), expected, "{header:?}");
        }
        assert_eq!(parse_range(Some("bytes=0-"), 0), Unsatisfiable);
    }

    #[test]
    fn conditional_headers_compare_entity_tags() {
        let tag = "\"abc\"";
        for header in ["\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "*"] {
            assert!(if_none_match_matches(header, tag), "{header}");
        }
        assert!(!if_none_match_matches("\"abcd\"", tag));
        assert!(if_range_matches(None, tag) && if_range_matches(Some("\"abc\""), tag));
        for header in ["W/\"abc\"", "\"x\"", "Fri, 20 Nov 2026 07:00:00 GMT"] {
            assert!(!if_range_matches(Some(header), tag), "{header}");
        }
    }
}
