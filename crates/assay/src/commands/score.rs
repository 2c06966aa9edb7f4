//! `assay score`: scores a file without a server.

use std::io::{BufRead, BufWriter, Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use assay_contracts::conversation::Conversation;

use super::weights;
use crate::exit::PARTIAL;
use crate::input;

/// Prints one evaluation per line. Faulty lines are reported on standard error and skipped.
#[allow(clippy::print_stderr, reason = "a command line tool reports faulty lines there")]
pub fn run(file: &Path, weights_file: Option<&Path>) -> Result<ExitCode> {
    let input = input::open(file)?.reader;
    let scorer = weights::scorer(weights_file)?;
    let mut output = BufWriter::new(stdout().lock());
    let mut all_scored = true;
    for (index, line) in input.split(b'\n').enumerate() {
        let line = line.with_context(|| format!("cannot read line {}", index + 1))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match Conversation::parse(&line) {
            Ok(conversation) => {
                serde_json::to_writer(&mut output, &scorer.evaluate(&conversation))?;
                output.write_all(b"\n")?;
            }
            Err(error) => {
                all_scored = false;
                eprintln!("line {}: {}", index + 1, error);
            }
        }
    }
    output.flush()?;
    Ok(if all_scored { ExitCode::SUCCESS } else { ExitCode::from(PARTIAL) })
}
