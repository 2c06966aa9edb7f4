//! Reads files of the zip archive that Swagger UI comes in (APPNOTE.TXT of the format, sections 4.3.7, 4.3.12 and 4.3.16). The
//! archive is part of the executable, so only the features that it uses are supported.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::DeflateDecoder;

/// Signature of the end of the central directory.
const END: &[u8] = b"PK\x05\x06";
/// Signature of an entry of the central directory.
const ENTRY: &[u8] = b"PK\x01\x02";
/// Fixed length of an entry, and of the local header before a file.
const ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// Offsets of fields from the signature of the end.
const END_ENTRY_COUNT: usize = 10;
const END_FIRST_ENTRY: usize = 16;
/// Offsets of fields from the signature of an entry.
const ENTRY_METHOD: usize = 10;
const ENTRY_PACKED_SIZE: usize = 20;
const ENTRY_UNPACKED_SIZE: usize = 24;
const ENTRY_NAME_LENGTH: usize = 28;
const ENTRY_EXTRA_LENGTH: usize = 30;
const ENTRY_COMMENT_LENGTH: usize = 32;
const ENTRY_LOCAL_HEADER: usize = 42;
/// Offsets of fields from the beginning of a local header.
const LOCAL_NAME_LENGTH: usize = 26;
const LOCAL_EXTRA_LENGTH: usize = 28;
/// Compression methods.
const STORED: usize = 0;
const DEFLATED: usize = 8;

#[derive(Debug, thiserror::Error)]
#[error("the archive of Swagger UI cannot be read: {0}")]
pub(super) struct Unreadable(String);

/// The contents of the files `names` in `folder`, which lies in the only folder at the top of the archive.
pub(super) fn read<'n>(
    archive: &[u8],
    folder: &str,
    names: &[&'n str],
) -> Result<BTreeMap<&'n str, Vec<u8>>, Unreadable> {
    let end =
        archive.windows(END.len()).rposition(|bytes| bytes == END).ok_or_else(|| unreadable("no end"))?;
    let count = number(archive, end + END_ENTRY_COUNT, 2)?;
    let mut entry_offset = number(archive, end + END_FIRST_ENTRY, 4)?;
    let mut files = BTreeMap::new();
    for _ in 0..count {
        if slice(archive, entry_offset, ENTRY.len())? != ENTRY {
            return Err(unreadable("an entry is missing"));
        }
        let name_bytes = number(archive, entry_offset + ENTRY_NAME_LENGTH, 2)?;
        let path = String::from_utf8_lossy(slice(archive, entry_offset + ENTRY_BYTES, name_bytes)?);
        let in_folder =
            path.split_once('/').and_then(|(_, path)| path.strip_prefix(folder)?.strip_prefix('/'));
        if let Some(name) = names.iter().find(|name| in_folder == Some(**name)) {
            files.insert(*name, content(archive, entry_offset)?);
        }
        let extra_bytes = number(archive, entry_offset + ENTRY_EXTRA_LENGTH, 2)?;
        let comment_bytes = number(archive, entry_offset + ENTRY_COMMENT_LENGTH, 2)?;
        entry_offset += ENTRY_BYTES + name_bytes + extra_bytes + comment_bytes;
    }
    match names.iter().find(|name| !files.contains_key(**name)) {
        Some(name) => Err(unreadable(&format!("it has no {name}"))),
        None => Ok(files),
    }
}

/// The file of the entry at `entry_offset`.
fn content(archive: &[u8], entry_offset: usize) -> Result<Vec<u8>, Unreadable> {
    let local = number(archive, entry_offset + ENTRY_LOCAL_HEADER, 4)?;
    let name_bytes = number(archive, local + LOCAL_NAME_LENGTH, 2)?;
    let extra_bytes = number(archive, local + LOCAL_EXTRA_LENGTH, 2)?;
    let packed_size = number(archive, entry_offset + ENTRY_PACKED_SIZE, 4)?;
    let packed = slice(archive, local + LOCAL_BYTES + name_bytes + extra_bytes, packed_size)?;
    let size = number(archive, entry_offset + ENTRY_UNPACKED_SIZE, 4)?;
    let mut unpacked = Vec::with_capacity(size);
    match number(archive, entry_offset + ENTRY_METHOD, 2)? {
        STORED => unpacked.extend_from_slice(packed),
        DEFLATED => {
            DeflateDecoder::new(packed)
                .read_to_end(&mut unpacked)
                .map_err(|error| unreadable(&error.to_string()))?;
        }
        method => return Err(unreadable(&format!("unknown method {method}"))),
    }
    if unpacked.len() == size { Ok(unpacked) } else { Err(unreadable("a file has another size")) }
}

/// A little-endian number of `bytes` bytes.
fn number(archive: &[u8], at: usize, bytes: usize) -> Result<usize, Unreadable> {
    Ok(slice(archive, at, bytes)?.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn slice(archive: &[u8], at: usize, bytes: usize) -> Result<&[u8], Unreadable> {
    at.checked_add(bytes).and_then(|end| archive.get(at..end)).ok_or_else(|| unreadable("it is cut off"))
}

fn unreadable(reason: &str) -> Unreadable {
    Unreadable(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;

    use super::*;

    #[test]
    fn missing_file_and_cut_archive_are_errors() {
        let missing = read(SWAGGER_UI_VENDORED, "dist", &["none.js"]).unwrap_err();
        assert!(missing.to_string().contains("it has no none.js"), "{missing}");
        for length in [0, 1_000, SWAGGER_UI_VENDORED.len() - 100] {
            assert!(read(&SWAGGER_UI_VENDORED[..length], "dist", &["index.html"]).is_err(), "{length}");
        }
    }
}
