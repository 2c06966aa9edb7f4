//! Prints the inputs of the reader's models for each assess body on standard input, one a line: the first step of training.
//!
//! `reader_inputs MODEL < conversations.jsonl > inputs.jsonl`; `MODEL` is a model file with the tokenizer.

use std::io::{BufRead, Write};

use assay_contracts::conversation::Conversation;
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let model = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("name the model file"))?;
    let extractor = assay_scoring::FeatureExtractor::new(&std::fs::read(model)?)?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let conversation = Conversation::parse(line?.as_bytes())
            .map_err(|error| anyhow::anyhow!("line {}: {error:?}", index + 1))?;
        let input = extractor.extract(&conversation);
        writeln!(
            output,
            "{}",
            json!({"id": conversation.ticket_id, "messages": input.messages, "roles": input.roles, "ids": input.ids, "markers": input.markers,
                "segments": input.segment_ends,
                "facts": input.structure, "facts_with_unseen": input.structure_with_hidden})
        )?;
    }
    Ok(())
}
