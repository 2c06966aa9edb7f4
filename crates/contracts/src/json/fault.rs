//! Kind and position of an error in a JSON text, without any of the text.

use std::fmt::{Display, Formatter};

use serde_json::error::Category;

/// Kind and position of an error. The messages of serde quote the text (`invalid type: string "…"`), which may be a
/// customer's, so they are neither logged nor sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonFault {
    kind: &'static str,
    line: usize,
    column: usize,
}

impl JsonFault {
    /// Kind and position of this error.
    pub fn of(error: &serde_json::Error) -> Self {
        let kind = match error.classify() {
            Category::Io => "input cannot be read",
            Category::Syntax => "malformed JSON",
            Category::Data => "JSON of another shape",
            Category::Eof => "JSON ends early",
        };
        Self { kind, line: error.line(), column: error.column() }
    }
}

impl Display for JsonFault {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { kind, line, column } = self;
        // serde_json has no position for an error in a `Value` that is already parsed: line 0.
        if *line == 0 { formatter.write_str(kind) } else { write!(formatter, "{kind} at {line}:{column}") }
    }
}

impl std::error::Error for JsonFault {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, from_str, from_value};

    use super::*;

    #[test]
    fn fault_names_kind_and_position_without_content() {
        type Numbers = BTreeMap<String, u8>;
        let fault = |text| JsonFault::of(&from_str::<Numbers>(text).unwrap_err()).to_string();
        assert_eq!(fault(r#"{"a": "a secret"}"#), "JSON of another shape at 1:16");
        assert_eq!(fault("{\n\"a\": secret}"), "malformed JSON at 2:6");
        assert_eq!(fault(r#"{"a": "#), "JSON ends early at 1:6");
        let read: Value = from_str(r#"{"a": "a secret"}"#).unwrap();
        assert_eq!(
            JsonFault::of(&from_value::<Numbers>(read).unwrap_err()).to_string(),
            "JSON of another shape"
        );
    }
}
