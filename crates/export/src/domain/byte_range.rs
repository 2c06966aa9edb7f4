//! Byte ranges and conditions of a download (RFC 9110, sections 13 and 14).

use std::ops::Range;

/// What part of a file a request wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: no range was asked for, or one that may be ignored (RFC 9110, section 14.2): malformed, of another
    /// unit, or several at once.
    Everything,
    /// One range; never empty, and inside of the file.
    Part(Range<u64>),
    /// A range that lies outside of the file.
    Unsatisfiable,
}

/// Reads a `Range` header for a file of `length` bytes.
pub fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(specification) = header.and_then(|header| strip_unit(header.trim())) else {
        return Wanted::Everything;
    };
    let Some((first, last)) = specification.trim().split_once('-') else { return Wanted::Everything };
    match (number(first), number(last)) {
        (Bound::Absent, Bound::At(suffix)) => part(length.saturating_sub(suffix)..length),
        (Bound::At(first), Bound::Absent) => part(first..length),
        (Bound::At(first), Bound::At(last)) if first <= last => {
            part(first..length.min(last.saturating_add(1)))
        }
        _ => Wanted::Everything,
    }
}

/// Whether `If-None-Match` names the file (RFC 9110, section 13.1.2: weak comparison).
pub fn none_match_names(header: &str, etag: &str) -> bool {
    header.trim() == "*"
        || header.split(',').map(str::trim).any(|tag| tag.strip_prefix("W/").unwrap_or(tag) == etag)
}

/// Whether a range may be answered under `If-Range` (RFC 9110, section 13.1.5: strong comparison). A date never
/// matches: files carry no date.
pub fn range_applies(if_range: Option<&str>, etag: &str) -> bool {
    if_range.is_none_or(|tag| tag.trim() == etag)
}

fn strip_unit(header: &str) -> Option<&str> {
    let (unit, specification) = header.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(specification)
}

fn part(range: Range<u64>) -> Wanted {
    if range.is_empty() { Wanted::Unsatisfiable } else { Wanted::Part(range) }
}

enum Bound {
    Absent,
    At(u64),
    Malformed,
}

fn number(text: &str) -> Bound {
    let text = text.trim();
    if text.is_empty() {
        return Bound::Absent;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Bound::Malformed;
    }
    // A number that does not fit lies behind the end of every file.
    Bound::At(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_range_is_read_as_the_rfc_says() {
        use Wanted::{Everything, Part, Unsatisfiable};
        let cases = [
            (None, Everything),
            (Some("bytes=0-0"), Part(0..1)),
            (Some("bytes=2-5"), Part(2..6)),
            (Some("Bytes = 2-5"), Part(2..6)),
            (Some("bytes=2-"), Part(2..10)),
            (Some("bytes=-3"), Part(7..10)),
            (Some("bytes=-100"), Part(0..10)),
            (Some("bytes=5-99999999999999999999999"), Part(5..10)),
            (Some("bytes=10-"), Unsatisfiable),
            (Some("bytes=99999999999999999999999-"), Unsatisfiable),
            (Some("bytes=-0"), Unsatisfiable),
            (Some("bytes=5-2"), Everything),
            (Some("bytes=a-b"), Everything),
            (Some("bytes=-"), Everything),
            (Some("bytes=0-1,4-5"), Everything),
            (Some("lines=0-1"), Everything),
            (Some("bytes"), Everything),
        ];
        for (header, expected) in cases {
            assert_eq!(wanted(header, 10), expected, "{header:?}");
        }
        assert_eq!(wanted(Some("bytes=0-"), 0), Unsatisfiable);
    }

    #[test]
    fn conditions_compare_entity_tags() {
        let tag = "\"abc\"";
        for header in ["\"abc\"", "W/\"abc\"", "\"x\", \"abc\"", "*"] {
            assert!(none_match_names(header, tag), "{header}");
        }
        assert!(!none_match_names("\"abcd\"", tag));
        assert!(range_applies(None, tag) && range_applies(Some("\"abc\""), tag));
        for header in ["W/\"abc\"", "\"x\"", "Fri, 20 Nov 2026 07:00:00 GMT"] {
            assert!(!range_applies(Some(header), tag), "{header}");
        }
    }
}
