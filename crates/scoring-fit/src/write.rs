//! Writing a weights file: JSON that a person can read and a diff can show, a list of lists one entry a line.

use std::io::{self, Write};

use assay_scoring::weights_file::WeightsFile;
use serde::Serialize;
use serde_json::ser::Formatter;

/// Objects and lists of lists below this depth stay on their line: the trees of a model lie at it.
const DEEPEST_BREAK: usize = 5;

/// The text of a weights file; the same file gives the same bytes.
///
/// # Errors
/// When a number cannot be written as JSON.
pub fn weights_text(file: &WeightsFile) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    file.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Lines::default()))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

/// Breaks lines between the entries of outer objects, and before a list inside a list.
#[derive(Debug, Default)]
struct Lines {
    /// What is open, outermost first.
    open: Vec<Open>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Open {
    Object,
    List,
    /// A list whose entries stand on lines of their own.
    BrokenList,
}

impl Lines {
    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        for _ in &self.open {
            writer.write_all(b" ")?;
        }
        Ok(())
    }

    fn breaks_objects(&self) -> bool {
        self.open.len() < DEEPEST_BREAK
    }
}

impl Formatter for Lines {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open.push(Open::Object);
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.breaks_objects() {
            return self.new_line(writer);
        }
        if first { Ok(()) } else { writer.write_all(b" ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let broken = self.breaks_objects();
        self.open.pop();
        if broken {
            self.new_line(writer)?;
        }
        writer.write_all(b"}")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.len() <= DEEPEST_BREAK
            && let Some(outer @ (Open::List | Open::BrokenList)) = self.open.last_mut()
        {
            *outer = Open::BrokenList;
            self.new_line(writer)?;
        }
        self.open.push(Open::List);
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b",") }
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(Open::BrokenList) {
            self.new_line(writer)?;
        }
        writer.write_all(b"]")
    }
}
