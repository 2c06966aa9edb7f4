//! Parses the output of `COPY (SELECT columns_version, line …) TO STDOUT (FORMAT binary)`.
//!
//! The format (PostgreSQL's documentation of `COPY`, "Binary Format"): a signature, flags and the length of an extension;
//! for each row the number of its fields, and for each field its length and its bytes; at the end -1 instead of a number
//! of fields. All numbers are big-endian. A message of the protocol holds whole rows.

use std::io::{self, BufRead};

use assay_platform::db::DatabaseError;

use crate::store::SnapshotError;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Reads all rows; `take` gets the column version and the line of each.
///
/// # Errors
/// When `take` or reading fails, or the stream ends without its trailer, as after a failure of the server.
pub(super) fn read_lines(
    mut stream: impl BufRead,
    mut take: impl FnMut(i16, &[u8]) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    read_header(&mut stream)?;
    loop {
        let message = stream.fill_buf().map_err(failed)?;
        if message.is_empty() {
            let reason = "the rows end without a trailer: see the log of PostgreSQL";
            return Err(DatabaseError::Unavailable(reason.to_owned()).into());
        }
        let Some((row, length)) = parse(message).ok_or_else(unknown_format)? else { break };
        take(row.0, row.1)?;
        stream.consume(length);
    }
    stream.consume(END_BYTES);
    // Consume the end of the stream, so that the connection can be reused.
    if stream.fill_buf().map_err(failed)?.is_empty() { Ok(()) } else { Err(unknown_format()) }
}

/// A row and its length in bytes; `None` for the trailer.
type Parsed<'m> = Option<((i16, &'m [u8]), usize)>;

const END_BYTES: usize = 2;

/// Parses the first row of a message; `None` when it is incomplete or malformed.
fn parse(message: &[u8]) -> Option<Parsed<'_>> {
    let mut rest = message;
    match i16::from_be_bytes(*take(&mut rest)?) {
        -1 => return Some(None),
        2 => {}
        _ => return None,
    }
    let 2 = i32::from_be_bytes(*take(&mut rest)?) else { return None };
    let version = i16::from_be_bytes(*take(&mut rest)?);
    let length = usize::try_from(i32::from_be_bytes(*take(&mut rest)?)).ok()?;
    let (line, rest) = rest.split_at_checked(length)?;
    Some(Some(((version, line), message.len() - rest.len())))
}

fn take<'m, const N: usize>(rest: &mut &'m [u8]) -> Option<&'m [u8; N]> {
    let (first, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(first)
}

fn read_header(stream: &mut impl BufRead) -> Result<(), SnapshotError> {
    let mut header = [0; SIGNATURE.len() + 8];
    stream.read_exact(&mut header).map_err(failed)?;
    // Expect no flags and no extension.
    if header.starts_with(SIGNATURE) && header[SIGNATURE.len()..] == [0; 8] {
        Ok(())
    } else {
        Err(unknown_format())
    }
}

/// The connection reports errors as text only.
fn failed(error: io::Error) -> SnapshotError {
    let kind = diesel::result::DatabaseErrorKind::Unknown;
    diesel::result::Error::DatabaseError(kind, Box::new(error.to_string())).into()
}

fn unknown_format() -> SnapshotError {
    DatabaseError::Corrupt("rows in an unknown format of COPY".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
    const END: &[u8] = b"\xff\xff";

    fn row(version: i16, line: &str) -> Vec<u8> {
        let length = i32::try_from(line.len()).unwrap();
        let numbers = [&2_i16.to_be_bytes()[..], &2_i32.to_be_bytes(), &version.to_be_bytes()].concat();
        [&numbers[..], &length.to_be_bytes(), line.as_bytes()].concat()
    }

    fn read(stream: &[u8]) -> Result<Vec<(i16, String)>, SnapshotError> {
        let mut lines = Vec::new();
        read_lines(stream, |version, line| {
            lines.push((version, String::from_utf8_lossy(line).into_owned()));
            Ok(())
        })?;
        Ok(lines)
    }

    #[test]
    fn rows_are_read_in_order_and_byte_for_byte() {
        let lines = [(1, "a,\"b\r\n\\.\",ü".to_owned()), (2, String::new()), (-1, "c".repeat(70_000))];
        let rows: Vec<u8> = lines.iter().flat_map(|(version, line)| row(*version, line)).collect();
        assert_eq!(read(&[HEADER, &rows, END].concat()).unwrap(), lines);
        assert_eq!(read(&[HEADER, END].concat()).unwrap(), []);
    }

    #[test]
    fn missing_trailer_is_an_error() {
        let outcome = read(&[HEADER, &row(1, "a")].concat());
        assert!(
            matches!(outcome, Err(SnapshotError::Database(DatabaseError::Unavailable(_)))),
            "{outcome:?}"
        );
    }

    #[test]
    fn malformed_stream_is_refused() {
        let whole = row(1, "a");
        let null = [&whole[..8], &(-1_i32).to_be_bytes()].concat();
        let cases: [(&str, Vec<u8>); 6] = [
            ("a row in two messages", [HEADER, &whole[..whole.len() - 1]].concat()),
            ("three fields", [HEADER, &3_i16.to_be_bytes(), &whole[2..], END].concat()),
            ("no line", [HEADER, &null, END].concat()),
            ("another signature", [b"PGCOPY\n\xff\r\n\x01", &HEADER[11..], END].concat()),
            ("flags", [&HEADER[..11], &[0, 1, 0, 0, 0, 0, 0, 0], END].concat()),
            ("something behind the end", [HEADER, END, b"x"].concat()),
        ];
        for (case, stream) in cases {
            let outcome = read(&stream);
            assert!(
                matches!(outcome, Err(SnapshotError::Database(DatabaseError::Corrupt(_)))),
                "{case}: {outcome:?}"
            );
        }
    }
}
