//! One line of an exported file: RFC 4180, and safe to be opened in a spreadsheet.

use std::fmt::{Display, Write};

use serde::Serialize;

/// Characters that start a formula in a spreadsheet, including the full-width forms that it normalises.
const FORMULA_STARTS: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// Whether a cell needs quotes (RFC 4180, section 2, rules 6 and 7). The relevant characters are ASCII. `;` and tab are quoted,
/// too: spreadsheets of some locales split lines at them, and what follows could begin a formula.
fn needs_quotes(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'"' | b',' | b';' | b'\t' | b'\r' | b'\n'))
}

/// A line under construction; each method appends one cell. A missing value is an empty cell, never a word like `null`.
#[derive(Debug, Default, Clone)]
pub struct Line {
    text: String,
    has_cells: bool,
}

impl Line {
    /// A line with room for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), has_cells: false }
    }

    /// Free text. A leading `'` guards text that a spreadsheet would run as a formula.
    pub fn text(&mut self, text: &str) {
        self.begin_cell();
        let guard = if text.starts_with(FORMULA_STARTS) { "'" } else { "" };
        self.push_quoted(guard, text);
    }

    /// [`Self::text`], or an empty cell.
    pub fn optional_text(&mut self, text: Option<&str>) {
        self.text(text.unwrap_or_default());
    }

    /// An id, number, boolean or state name. Never guarded: a negative number stays a number.
    pub fn value(&mut self, value: impl Display) {
        self.begin_cell();
        let from = self.text.len();
        // Writing to a string is infallible.
        let _ = write!(self.text, "{value}");
        if needs_quotes(&self.text[from..]) {
            let written = self.text.split_off(from);
            self.push_quoted("", &written);
        }
    }

    /// [`Self::value`], or an empty cell.
    pub fn optional<T: Display>(&mut self, value: Option<T>) {
        match value {
            Some(value) => self.value(value),
            None => self.begin_cell(),
        }
    }

    /// NaN and infinities become an empty cell.
    pub fn optional_fraction(&mut self, value: Option<f64>) {
        self.optional(value.filter(|value| value.is_finite()));
    }

    /// A JSON array.
    pub fn list<T: Serialize>(&mut self, items: &[T]) {
        self.begin_cell();
        // Serializing strings and names is infallible.
        self.push_quoted("", &serde_json::to_string(items).unwrap_or_default());
    }

    /// The line, without its terminator.
    pub fn finish(self) -> String {
        self.text
    }

    /// Begins a cell, which stays empty if nothing is appended to it.
    pub fn begin_cell(&mut self) {
        if self.has_cells {
            self.text.push(',');
        }
        self.has_cells = true;
    }

    fn push_quoted(&mut self, guard: &str, text: &str) {
        if !needs_quotes(text) {
            self.text.push_str(guard);
            self.text.push_str(text);
            return;
        }
        self.text.push('"');
        self.text.push_str(guard);
        for (index, part) in text.split('"').enumerate() {
            if index > 0 {
                self.text.push_str("\"\"");
            }
            self.text.push_str(part);
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(write: impl FnOnce(&mut Line)) -> String {
        let mut line = Line::default();
        write(&mut line);
        line.finish()
    }

    #[test]
    fn text_that_looks_like_a_formula_is_guarded() {
        let cases = [
            ("=1+1", "'=1+1"),
            ("+49 30 1234", "'+49 30 1234"),
            ("-", "'-"),
            ("@here", "'@here"),
            ("\tindented", "\"'\tindented\""),
            ("\rreturned", "\"'\rreturned\""),
            ("\nbroken", "\"'\nbroken\""),
            ("＝1+1", "'＝1+1"),
            ("＋1", "'＋1"),
            ("－1", "'－1"),
            ("＠all", "'＠all"),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("1-1", "1-1"),
            ("'=1", "'=1"),
            ("", ""),
        ];
        for (text, written) in cases {
            assert_eq!(line(|line| line.text(text)), written, "{text:?}");
        }
    }

    #[test]
    fn only_text_is_guarded() {
        assert_eq!(line(|line| line.value(-5)), "-5");
        assert_eq!(line(|line| line.optional_fraction(Some(-0.5))), "-0.5");
    }

    #[test]
    fn missing_value_is_an_empty_cell() {
        let written = line(|line| {
            line.optional_text(None);
            line.optional::<i64>(None);
            line.optional_fraction(Some(f64::NAN));
            line.begin_cell();
            line.list::<&str>(&[]);
        });
        assert_eq!(written, ",,,,[]");
    }

    #[test]
    fn list_is_a_json_array_in_one_cell() {
        assert_eq!(line(|line| line.list(&["a", "b,\"c\""])), r#""[""a"",""b,\""c\""""]""#);
    }

    #[test]
    fn quotes_separators_and_line_breaks_are_quoted() {
        let cases = [
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("two\r\nlines", "\"two\r\nlines\""),
            ("foo;=cmd|'/C calc'!A0", "\"foo;=cmd|'/C calc'!A0\""),
            ("a\tb", "\"a\tb\""),
        ];
        for (text, written) in cases {
            assert_eq!(line(|line| line.text(text)), written);
        }
    }
}
