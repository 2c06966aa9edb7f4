//! Prints the ids of each line on standard input, separated by spaces.
//!
//! `cargo run --release -p assay-encoder --example tokenize -- MODEL < lines > ids`

use std::io::{BufRead, Write};

use anyhow::Context;
use assay_encoder::Model;

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).context("usage: tokenize MODEL < lines > ids")?;
    let model = Model::parse(&std::fs::read(&path).with_context(|| path.clone())?)?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut ids = Vec::new();
    for line in std::io::stdin().lock().lines() {
        ids.clear();
        model.tokenize(&line?, &mut ids);
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        writeln!(output, "{}", ids.join(" "))?;
    }
    output.flush()?;
    Ok(())
}
