//! Counts the rows of a CSV stream.

/// Counts line ends outside quotes (RFC 4180). A doubled quote closes and reopens the quotes, so it needs no special case.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct RowCounter {
    in_quotes: bool,
    lines: u64,
}

impl RowCounter {
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
    fn line_ends_in_cells_are_not_rows() {
        let cases = [
            ("", 0),
            ("a,b\r\n", 0),
            ("a,b\r\n1,2\r\n", 1),
            ("a\r\n\"x\r\ny\"\r\n\"he said \"\"\n\"\"\"\r\n", 2),
        ];
        for (file, rows) in cases {
            // In chunks of any size.
            for size in 1..5 {
                let mut counter = RowCounter::default();
                file.as_bytes().chunks(size).for_each(|piece| counter.read(piece));
                assert_eq!(counter.rows(), rows, "{file:?}");
            }
        }
    }
}
