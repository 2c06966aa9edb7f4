//! Counting the rows of a CSV file while it passes by.

/// Line ends outside of quotes (RFC 4180): a quote within quotes is doubled, so that it ends and begins them again.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RowCounter {
    in_quotes: bool,
    lines: u64,
}

impl RowCounter {
    /// Reads on.
    pub fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'"' => self.in_quotes = !self.in_quotes,
                b'\n' if !self.in_quotes => self.lines += 1,
                _ => {}
            }
        }
    }

    /// Rows so far, without the header.
    pub fn rows(&self) -> u64 {
        self.lines.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_in_cells_are_no_rows() {
        let cases = [
            ("", 0),
            ("a,b\r\n", 0),
            ("a,b\r\n1,2\r\n", 1),
            ("a\r\n\"x\r\ny\"\r\n\"he said \"\"\n\"\"\"\r\n", 2),
        ];
        for (file, rows) in cases {
            // However it is cut.
            for size in 1..5 {
                let mut counter = RowCounter::default();
                file.as_bytes().chunks(size).for_each(|piece| counter.read(piece));
                assert_eq!(counter.rows(), rows, "{file:?}");
            }
        }
    }
}
