//! Prints what the models see, one JSON object a line, for each assess body on standard input.
//!
//! `gzip -dc conversations.jsonl.gz | cargo run -p assay-scoring --example features > features.jsonl`

use std::io::{BufRead, Write};

use assay_contracts::conversation::Conversation;
use assay_scoring::FeatureReader;

fn main() -> anyhow::Result<()> {
    let reader = FeatureReader::builtin()?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    for (index, line) in std::io::stdin().lock().lines().enumerate() {
        let conversation = Conversation::parse(line?.as_bytes())
            .map_err(|error| anyhow::anyhow!("line {}: {error:?}", index + 1))?;
        let features = reader.features(&conversation);
        let signs: serde_json::Map<String, serde_json::Value> =
            features.values.iter().map(|feature| (feature.name.clone(), feature.sign.into())).collect();
        let values: serde_json::Map<String, serde_json::Value> =
            features.values.into_iter().map(|feature| (feature.name, feature.value.into())).collect();
        let line = serde_json::json!({
            "ticket_id": conversation.ticket_id,
            "end": features.end,
            "detail": features.detail,
            "features": values,
            "signs": signs,
        });
        writeln!(output, "{line}")?;
    }
    Ok(())
}
