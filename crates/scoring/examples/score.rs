//! Prints the evaluation of each assess body on standard input, one a line.

use std::io::{BufRead, Write};

use assay_contracts::conversation::Conversation;
use assay_scoring::Scorer;

fn main() -> anyhow::Result<()> {
    let scorer = Scorer::builtin()?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let conversation = Conversation::parse(line?.as_bytes())
            .map_err(|error| anyhow::anyhow!("line {}: {error:?}", index + 1))?;
        writeln!(output, "{}", serde_json::to_string(&scorer.evaluate(&conversation))?)?;
    }
    Ok(())
}
