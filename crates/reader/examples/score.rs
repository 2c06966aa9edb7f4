//! Prints the reader's evaluation of each assess body on standard input, one a line, in order.
//!
//! `score MODEL < conversations.jsonl > evaluations.jsonl`

use std::io::{BufRead, Write};

use anyhow::Context;
use assay_contracts::conversation::Conversation;
use assay_reader::Scorer;

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).context("name a model file")?;
    let model = std::fs::read(&path).with_context(|| format!("cannot read {path}"))?;
    let scorer = Scorer::with_model(&model)?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let conversation = Conversation::parse(line?.as_bytes())
            .map_err(|error| anyhow::anyhow!("line {}: {error:?}", index + 1))?;
        writeln!(output, "{}", serde_json::to_string(&scorer.evaluate(&conversation))?)?;
    }
    Ok(())
}
