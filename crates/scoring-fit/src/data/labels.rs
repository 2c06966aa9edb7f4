//! Labels by human reviewers, one JSON object per line.

use std::collections::BTreeMap;
use std::path::Path;

use assay_contracts::evaluation::ResolutionStatus;
use serde::Deserialize;

use super::files::{DataError, lines, read};

/// A reviewer's labels of one conversation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Label {
    /// 1–5.
    pub resolution_accuracy: Option<f64>,
    /// 1–5.
    pub interaction_effort: Option<f64>,
    /// 1–5.
    pub handoff_smoothness: Option<f64>,
    /// Whether the issue was solved.
    pub resolution: Option<ResolutionStatus>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    ticket_id: String,
    resolution_accuracy: Option<f64>,
    interaction_effort: Option<f64>,
    handoff_smoothness: Option<f64>,
    resolution: Option<String>,
}

/// The labels of a file by ticket id. Its lines are `{"ticket_id": …, "resolution_accuracy": 1–5, "interaction_effort": 1–5,
/// "handoff_smoothness": 1–5, "resolution": "resolved|partial|not_resolved"}`, every label optional; `.gz` is decompressed.
///
/// # Errors
/// When the file cannot be read, or naming the line and the field that is wrong.
pub(super) fn read_labels(path: &Path) -> Result<BTreeMap<String, Label>, DataError> {
    let bytes = read(path)?;
    let mut labels = BTreeMap::new();
    for (line, text) in lines(&bytes) {
        let refused = |reason: String| DataError::Line { path: path.to_owned(), line, reason };
        let (ticket_id, label) = parse(text).map_err(refused)?;
        if labels.insert(ticket_id.clone(), label).is_some() {
            return Err(refused(format!("ticket_id `{ticket_id}` was labelled before: keep one label")));
        }
    }
    Ok(labels)
}

fn parse(text: &[u8]) -> Result<(String, Label), String> {
    let line: Line = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let label = Label {
        resolution_accuracy: parse_points("resolution_accuracy", line.resolution_accuracy)?,
        interaction_effort: parse_points("interaction_effort", line.interaction_effort)?,
        handoff_smoothness: parse_points("handoff_smoothness", line.handoff_smoothness)?,
        resolution: line.resolution.map(|name| parse_class(&name)).transpose()?,
    };
    if label == Label::default() {
        return Err(
            "no label: give resolution_accuracy, interaction_effort, handoff_smoothness or resolution"
                .to_owned(),
        );
    }
    Ok((line.ticket_id, label))
}

fn parse_points(field: &str, value: Option<f64>) -> Result<Option<f64>, String> {
    match value {
        Some(points) if !(1.0..=5.0).contains(&points) => {
            Err(format!("{field} is {points}: it must lie between 1 and 5"))
        }
        _ => Ok(value),
    }
}

fn parse_class(name: &str) -> Result<ResolutionStatus, String> {
    ResolutionStatus::from_name(name)
        .ok_or_else(|| format!("resolution is `{name}`: it must be `resolved`, `partial` or `not_resolved`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_label_is_enough() {
        let (id, label) = parse(br#"{"ticket_id":"t","interaction_effort":2}"#).unwrap();
        assert_eq!((id.as_str(), label.interaction_effort), ("t", Some(2.0)));
        let (_, label) = parse(br#"{"ticket_id":"t","resolution":"partial"}"#).unwrap();
        assert_eq!(label.resolution, Some(ResolutionStatus::Partial));
    }

    #[test]
    fn invalid_label_is_refused_with_its_field() {
        let cases = [
            (r#"{"ticket_id":"t"}"#, "no label"),
            (r#"{"resolution_accuracy":3}"#, "ticket_id"),
            (r#"{"ticket_id":"t","resolution_accuracy":6}"#, "resolution_accuracy is 6"),
            (r#"{"ticket_id":"t","interaction_effort":0.5}"#, "interaction_effort is 0.5"),
            (r#"{"ticket_id":"t","handoff_smoothness":9}"#, "handoff_smoothness is 9"),
            (r#"{"ticket_id":"t","resolution":"solved"}"#, "resolution is `solved`"),
            (r#"{"ticket_id":"t","resolution_acuracy":3}"#, "resolution_acuracy"),
        ];
        for (text, reason) in cases {
            let refused = parse(text.as_bytes()).unwrap_err();
            assert!(refused.contains(reason), "{text}: {refused}");
        }
    }
}
