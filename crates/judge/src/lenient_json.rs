//! Extracts the JSON object from the output of a model: inside code fences, after its reasoning, with trailing commas.

use serde_json::Value;

/// Maximum number of opening braces that are tried: bounds the work on adversarial text.
const MAX_CANDIDATES: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoObject {
    #[error("it holds no JSON object")]
    NotFound,
    #[error("its JSON object is cut off")]
    CutOff,
    #[error("its JSON object cannot be read: {0}")]
    Malformed(String),
    #[error("it holds no JSON object with the member \"{0}\"")]
    MissingMember(&'static str),
}

/// The last object in `text` that has `member`.
pub(crate) fn find_object(text: &str, member: &'static str) -> Result<Value, NoObject> {
    let mut found = None;
    let mut error = NoObject::NotFound;
    let mut from = 0;
    for _ in 0..MAX_CANDIDATES {
        let Some(start) = text.get(from..).and_then(|rest| rest.find('{')).map(|at| from + at) else { break };
        let rest = text.get(start..).unwrap_or("");
        let Some(length) = object_length(rest) else {
            error = first_error(error, NoObject::CutOff);
            from = start + 1;
            continue;
        };
        match read(rest.get(..length).unwrap_or("")) {
            Ok(value) if value.get(member).is_some() => {
                found = Some(value);
                from = start + length;
            }
            // The object may be nested, as in the arguments of a function call.
            Ok(_) => {
                error = first_error(error, NoObject::MissingMember(member));
                from = start + 1;
            }
            Err(cause) => {
                error = first_error(error, NoObject::Malformed(cause.to_string()));
                from = start + 1;
            }
        }
    }
    found.ok_or(error)
}

/// The first error: it is about the outermost object.
fn first_error(known: NoObject, new: NoObject) -> NoObject {
    if known == NoObject::NotFound { new } else { known }
}

/// Length of the object at the start of `text`; `None` when it is not closed.
fn object_length(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut outside = OutsideStrings::default();
    for (at, byte) in text.bytes().enumerate() {
        if !outside.step(byte) {
            continue;
        }
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_str(&without_trailing_commas(text)).map_err(|_| error))
}

fn without_trailing_commas(text: &str) -> String {
    let mut kept: Vec<u8> = Vec::with_capacity(text.len());
    let mut outside = OutsideStrings::default();
    for byte in text.bytes() {
        let is_outside = outside.step(byte);
        if is_outside && matches!(byte, b'}' | b']') {
            let end = kept.iter().rposition(|byte| !byte.is_ascii_whitespace());
            if let Some(end) = end.filter(|end| kept.get(*end) == Some(&b',')) {
                kept.truncate(end);
            }
        }
        kept.push(byte);
    }
    // Only whole ASCII characters were removed.
    String::from_utf8(kept).unwrap_or_default()
}

/// Tracks whether a byte is outside of JSON strings.
#[derive(Default)]
struct OutsideStrings {
    in_string: bool,
    escaped: bool,
}

impl OutsideStrings {
    /// Takes the next byte and returns whether it is outside of strings.
    fn step(&mut self, byte: u8) -> bool {
        if !self.in_string {
            self.in_string = byte == b'"';
            return !self.in_string;
        }
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.in_string = false;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn object_is_found_in_surrounding_text() {
        let cases = [
            r#"{"case":"a}\"{"}"#,
            "```json\n{\"case\": \"a}\\\"{\"}\n```",
            "<think>Maybe {this} or {\"score\": 1}?</think>\nHere it is: {\"case\":\"a}\\\"{\"} Hope that helps!",
            "{\"case\":\"a}\\\"{\",}",
            "{\"answer\": {\"case\":\"a}\\\"{\"}}",
            "{\"case\":\"first\"} no, rather {\"case\":\"a}\\\"{\"}",
            "Unbalanced { here. {\"case\":\"a}\\\"{\"}",
        ];
        for text in cases {
            assert_eq!(find_object(text, "case"), Ok(json!({"case": "a}\"{"})), "{text}");
        }
    }

    #[test]
    fn commas_in_strings_are_kept() {
        let text = r#"{"case": "a,}", "list": [1, 2, ], }"#;
        assert_eq!(find_object(text, "case"), Ok(json!({"case": "a,}", "list": [1, 2]})));
    }

    #[test]
    fn missing_object_is_diagnosed() {
        assert_eq!(find_object("Good conversation!", "case"), Err(NoObject::NotFound));
        assert_eq!(find_object(r#"{"case": "a", "reason": "The agent"#, "case"), Err(NoObject::CutOff));
        assert_eq!(find_object(r#"{"score": 4}"#, "case"), Err(NoObject::MissingMember("case")));
        assert!(matches!(find_object(r#"{"case": a}"#, "case"), Err(NoObject::Malformed(_))));
        assert_eq!(find_object(&"{".repeat(100_000), "case"), Err(NoObject::CutOff));
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in ".{0,200}|[\\[\\]{}\",:a\\\\ ]{0,200}") {
            if let Ok(value) = find_object(&text, "a") {
                prop_assert!(value.get("a").is_some());
            }
        }

        #[test]
        fn embedded_object_round_trips(reason in ".{0,60}", before in "[^{}\"]{0,40}", after in "[^{}]{0,40}") {
            let object = json!({"case": 1, "reason": reason});
            prop_assert_eq!(find_object(&format!("{before}{object}{after}"), "case"), Ok(object));
        }
    }
}
