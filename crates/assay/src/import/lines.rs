//! Reads the input line by line, or value by value where JSON values span lines.

use std::io::{BufRead, Cursor, Read};
use std::path::Path;

use anyhow::{Context, Result};
use serde::de::IgnoredAny;

use crate::input;

/// A line, or a JSON value that spans several lines.
pub struct Line {
    /// Number of its first line, from 1.
    pub number: u64,
    /// Byte offset of its end.
    pub end: u64,
    /// Without the line end; not validated.
    pub body: Vec<u8>,
}

/// Iterator over the lines that are not empty.
pub struct Lines {
    input: Box<dyn BufRead + Send>,
    total_bytes: Option<u64>,
    lines_read: u64,
    bytes_read: u64,
    /// Whether values may span lines.
    is_multiline: bool,
}

impl Lines {
    /// Opens a file (`-`: standard input) with one value per line.
    pub fn open(file: &Path) -> Result<Self> {
        let input::Input { reader, total_bytes } = input::open(file)?;
        Ok(Self { input: reader, total_bytes, lines_read: 0, bytes_read: 0, is_multiline: false })
    }

    /// Opens a JSON file: one value per line or, when the first line is an incomplete value, values that span lines.
    pub fn open_json(file: &Path) -> Result<Self> {
        let mut lines = Self::open(file)?;
        let mut beginning = Vec::new();
        let mut has_content = false;
        while !has_content && lines.input.read_until(b'\n', &mut beginning)? > 0 {
            has_content = !beginning.trim_ascii().is_empty();
        }
        lines.is_multiline =
            matches!(serde_json::from_slice::<IgnoredAny>(&beginning), Err(error) if error.is_eof());
        lines.input = Box::new(std::io::BufReader::new(Cursor::new(beginning).chain(lines.input)));
        Ok(lines)
    }

    /// Size of the input in bytes, when it is known.
    pub fn total_bytes(&self) -> Option<u64> {
        self.total_bytes
    }

    /// The next line or, in multi-line input, the next value (at the end of the input even an incomplete one).
    fn read(&mut self) -> Result<Option<Line>> {
        let mut body = Vec::new();
        let mut brackets = Brackets::default();
        let first_line = self.lines_read + 1;
        loop {
            let begin = body.len();
            let bytes = self
                .input
                .read_until(b'\n', &mut body)
                .with_context(|| format!("cannot read line {}", self.lines_read + 1))?;
            if bytes == 0 && body.is_empty() {
                return Ok(None);
            }
            self.lines_read += u64::from(bytes > 0);
            self.bytes_read += bytes as u64;
            brackets.read(&body[begin..]);
            if bytes == 0 || !self.is_multiline || !brackets.is_value_incomplete() {
                break;
            }
        }
        while matches!(body.last(), Some(b'\n' | b'\r')) {
            body.pop();
        }
        Ok(Some(Line { number: first_line, end: self.bytes_read, body }))
    }
}

/// Bracket depth of a JSON text; brackets in strings do not count.
#[derive(Default)]
struct Brackets {
    depth: i64,
    in_string: bool,
    escaped: bool,
}

impl Brackets {
    fn read(&mut self, text: &[u8]) {
        for byte in text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if !self.in_string => self.depth += 1,
                b'}' | b']' if !self.in_string => self.depth -= 1,
                _ => {}
            }
        }
    }

    fn is_value_incomplete(&self) -> bool {
        self.depth > 0 || self.in_string
    }
}

impl Iterator for Lines {
    type Item = Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.read() {
                Ok(Some(line)) if line.body.trim_ascii().is_empty() => {}
                other => return other.transpose(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// First line, end, text.
    type Value<'a> = (u64, u64, &'a str);

    fn values(text: &str) -> Vec<(u64, u64, String)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("input.json");
        std::fs::write(&file, text).unwrap();
        let lines = Lines::open_json(&file).unwrap().map(Result::unwrap);
        lines.map(|line| (line.number, line.end, String::from_utf8(line.body).unwrap())).collect()
    }

    #[test]
    fn input_is_split_by_line_or_by_json_value() {
        let cases: [(&str, &[Value<'_>]); 5] = [
            ("{\"a\":1}\n\n{\"b\":2}\n", &[(1, 8, "{\"a\":1}"), (3, 17, "{\"b\":2}")]),
            // Broken JSON affects its own line only.
            ("{\"a\":1}\n{\"b\":\n{}\n", &[(1, 8, "{\"a\":1}"), (2, 14, "{\"b\":"), (3, 17, "{}")]),
            ("{\n \"a\": \"}\\\"\"\n}\n{\n}\n", &[(1, 16, "{\n \"a\": \"}\\\"\"\n}"), (4, 20, "{\n}")]),
            ("\n[\n{},\n{}]", &[(2, 10, "[\n{},\n{}]")]),
            ("{\n\"a\":", &[(1, 6, "{\n\"a\":")]),
        ];
        for (text, expected) in cases {
            let expected: Vec<_> = expected.iter().map(|(n, e, b)| (*n, *e, (*b).to_owned())).collect();
            assert_eq!(values(text), expected, "{text:?}");
        }
    }
}
