//! Prints what the reader's models see of each assess body on standard input, one a line, in order: what fitting them
//! begins with.
//!
//! `reader_inputs < conversations.jsonl > inputs.jsonl`

use std::io::{BufRead, Write};

use assay_contracts::conversation::Conversation;
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let conversation = Conversation::parse(line?.as_bytes())
            .map_err(|error| anyhow::anyhow!("line {}: {error:?}", index + 1))?;
        let input = assay_scoring::reader_input(&conversation)?;
        writeln!(
            output,
            "{}",
            json!({"id": conversation.ticket_id, "messages": input.messages, "roles": input.roles, "grams": input.grams,
                "facts": input.facts, "facts_with_unseen": input.facts_with_unseen})
        )?;
    }
    Ok(())
}
