//! One public data set: bodies and labels of a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_scoring::FeatureReader;
use assay_scoring::weights_file::DataEntry;
use serde_json::Value;

use super::table::DataSetRules;
use crate::FitError;
use crate::data::{DataError, Example, Label, conversations, lines, read, sha256_hex};
use crate::metrics::Class;
use crate::scored::Dimension;

/// Labels with this split are fitted on.
const TRAIN: &str = "train";

/// A data set with its rules.
#[derive(Debug)]
pub(crate) struct DataSet {
    pub rules: DataSetRules,
    pub examples: Vec<Example>,
    /// Beside `examples`: whether it may be fitted on.
    pub is_train: Vec<bool>,
    /// For the manifest.
    pub entry: DataEntry,
}

impl DataSet {
    /// Reads `NAME.jsonl[.gz]` and `NAME.labels.jsonl[.gz]`; conversations without a label are left out.
    pub(crate) fn read(
        folder: &Path,
        rules: &DataSetRules,
        reader: &FeatureReader,
    ) -> Result<Self, FitError> {
        let bodies = place(folder, &format!("{}.jsonl", rules.name));
        let labels = place(folder, &format!("{}.labels.jsonl", rules.name));
        let (body_bytes, label_bytes) = (read(&bodies)?, read(&labels)?);
        let mut labelled = labels_by_ticket(&labels, &label_bytes, rules)?;
        let (mut examples, mut is_train) = (Vec::new(), Vec::new());
        for conversation in conversations(&bodies, &body_bytes)? {
            if let Some((label, train)) = labelled.remove(&conversation.ticket_id) {
                examples.push(Example::new(reader, conversation, label));
                is_train.push(train);
            }
        }
        let fitted = is_train.iter().filter(|train| **train).count();
        if fitted == 0 || fitted == examples.len() {
            return Err(FitError::Split(rules.name.clone()));
        }
        let entry = DataEntry {
            name: rules.name.clone(),
            fitted,
            kept_back: examples.len() - fitted,
            conversations_sha256: sha256_hex(&body_bytes),
            labels_sha256: sha256_hex(&label_bytes),
        };
        Ok(Self { rules: rules.clone(), examples, is_train, entry })
    }

    /// The examples that were kept back from fitting.
    pub(crate) fn kept_back(&self) -> impl Iterator<Item = &Example> {
        self.examples.iter().zip(&self.is_train).filter(|(_, train)| !**train).map(|(example, _)| example)
    }
}

/// The plain file where there is one, else the packed one.
fn place(folder: &Path, name: &str) -> PathBuf {
    let plain = folder.join(name);
    if plain.exists() { plain } else { folder.join(format!("{name}.gz")) }
}

fn labels_by_ticket(
    path: &Path,
    bytes: &[u8],
    rules: &DataSetRules,
) -> Result<BTreeMap<String, (Label, bool)>, DataError> {
    let mut labelled = BTreeMap::new();
    for (line, text) in lines(bytes) {
        let refused = |reason: String| DataError::Line { path: path.to_owned(), line, reason };
        let fields: BTreeMap<String, Value> =
            serde_json::from_slice(text).map_err(|error| refused(error.to_string()))?;
        let text = |field: &str| fields.get(field).and_then(Value::as_str);
        let number = |field: &str| {
            let value = fields.get(field).and_then(Value::as_f64);
            value.ok_or_else(|| refused(format!("`{field}` is missing or not a number")))
        };
        let (Some(ticket_id), Some(split)) = (text("ticket_id"), text("split")) else {
            return Err(refused("`ticket_id` or `split` is missing".to_owned()));
        };
        let points = |dimension| {
            let rule = rules.rule(dimension);
            number(&rule.label).map(|label| Some(rule.points(label)))
        };
        let classes = &rules.classes;
        let resolution = match number(&classes.label)? {
            label if label < classes.not_resolved_below => Class::NotResolved,
            label if label > classes.resolved_above => Class::Resolved,
            _ => Class::Partial,
        };
        let label = Label {
            resolution_accuracy: points(Dimension::ResolutionAccuracy)?,
            interaction_effort: points(Dimension::InteractionEffort)?,
            resolution: Some(resolution),
        };
        labelled.insert(ticket_id.to_owned(), (label, split == TRAIN));
    }
    Ok(labelled)
}
