//! Public conversations with ratings by people, from the folder of measurement data beside the workspace.

use std::io::Read;
use std::path::Path;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::Dimensions;
use assay_scoring::Scorer;
use flate2::read::GzDecoder;
use serde_json::Value;

/// The held-out conversations of a set (split `dev`), each with its labels.
pub fn held_out(folder: &Path, name: &str) -> Vec<(Value, Value)> {
    let labels: std::collections::BTreeMap<String, Value> =
        lines(&folder.join(format!("{name}.labels.jsonl.gz")))
            .into_iter()
            .filter(|label| label["split"] == "dev")
            .map(|label| (label["ticket_id"].as_str().unwrap().to_owned(), label))
            .collect();
    let bodies = lines(&folder.join(format!("{name}.jsonl.gz"))).into_iter();
    let labelled = |body: Value| Some((labels.get(body["ticket_id"].as_str()?)?.clone(), body));
    bodies.filter_map(labelled).map(|(label, body)| (body, label)).collect()
}

/// The scores of a conversation; `None` where AXIS does not apply.
pub fn dimensions(scorer: &Scorer, body: &Value) -> Option<Dimensions> {
    let conversation = Conversation::parse(body.to_string().as_bytes()).unwrap();
    scorer.evaluate(&conversation).axis.map(|axis| axis.dimensions)
}

fn lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
