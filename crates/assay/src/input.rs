//! Opens input files: `-` is standard input, names that end in `.gz` are decompressed.

use std::fs::File;
use std::io::{BufRead, BufReader, stdin};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::bufread::MultiGzDecoder;

pub struct Input {
    pub reader: Box<dyn BufRead + Send>,
    /// `None` for standard input, pipes and compressed files.
    pub total_bytes: Option<u64>,
}

pub fn open(file: &Path) -> Result<Input> {
    if file == Path::new("-") {
        return Ok(Input { reader: Box::new(BufReader::new(stdin())), total_bytes: None });
    }
    let opened = File::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    let total_bytes = opened.metadata().ok().filter(|file| file.is_file()).map(|file| file.len());
    let reader = BufReader::new(opened);
    if file.extension().is_some_and(|extension| extension == "gz") {
        let decompressed = BufReader::new(MultiGzDecoder::new(reader));
        return Ok(Input { reader: Box::new(decompressed), total_bytes: None });
    }
    Ok(Input { reader: Box::new(reader), total_bytes })
}
