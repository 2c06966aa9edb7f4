//! Plain-text description of a weights file.

use assay_scoring::{LinearModel, Weights};

use crate::scored::Dimension;
use crate::table_text::TextTable;

/// A table of the terms of each score.
pub fn describe(weights: &Weights) -> String {
    let mut text = format!(
        "fitted on {} conversations, for the model {}\n\n",
        weights.conversations, weights.reader_sha256
    );
    let mut table =
        TextTable::new(&["", "constant", "accuracy", "effort", "handoff", "resolved", "not resolved"]);
    let models = [weights.resolution_accuracy, weights.interaction_effort, weights.handoff_smoothness];
    for (index, (dimension, model)) in Dimension::ALL.into_iter().zip(models).enumerate() {
        let cells = if model == LinearModel::identity(index) {
            vec!["as shipped".to_owned()]
        } else {
            [model.intercept].iter().chain(&model.factors).map(|factor| format!("{factor:.3}")).collect()
        };
        table.row([vec![dimension.name().to_owned()], cells].concat());
    }
    text.push_str(&table.text());
    text.push_str("\na score is the constant, in points, and each reading times its factor; the last two are probabilities\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_and_shipped_scores_are_distinguished() {
        let model = LinearModel { intercept: -0.25, factors: [0.5, 0.0, 0.0, 1.5, 0.0] };
        let weights = Weights {
            format: assay_scoring::WEIGHTS_FORMAT,
            reader_sha256: "ab12".to_owned(),
            conversations: 60,
            resolution_accuracy: model,
            interaction_effort: LinearModel::identity(1),
            handoff_smoothness: LinearModel::identity(2),
        };
        let text = describe(&weights);
        assert!(text.starts_with("fitted on 60 conversations, for the model ab12\n"), "{text}");
        let fitted = text.lines().find(|line| line.starts_with("resolution accuracy")).unwrap();
        assert_eq!(
            fitted.split_whitespace().skip(2).collect::<Vec<_>>(),
            ["-0.250", "0.500", "0.000", "0.000", "1.500", "0.000"]
        );
        assert!(
            text.lines().any(|line| line.starts_with("interaction effort") && line.ends_with("as shipped"))
        );
    }
}
