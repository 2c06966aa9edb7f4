//! Files that commands read: standard input for `-`, unpacked when the name ends in `.gz`.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::bufread::MultiGzDecoder;

/// An open input.
pub struct Input {
    pub reader: Box<dyn BufRead + Send>,
    /// Size of what is read from it, when it is known.
    pub total: Option<u64>,
}

/// Opens a file.
pub fn open(file: &Path) -> Result<Input> {
    if file == Path::new("-") {
        return Ok(Input { reader: Box::new(BufReader::new(stdin())), total: None });
    }
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let total = opened.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
    let reader = BufReader::new(opened);
    if file.extension().is_some_and(|extension| extension == "gz") {
        return Ok(Input { reader: Box::new(BufReader::new(MultiGzDecoder::new(reader))), total: None });
    }
    Ok(Input { reader: Box::new(reader), total })
}
