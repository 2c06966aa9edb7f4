//! How far to trust a score, by the state in which the customer ends; and which scores mean "resolved".

use std::collections::BTreeMap;

use assay_scoring::FeatureReader;
use assay_scoring::weights_file::{PerDimension, ResolutionThresholds};

use super::data_set::DataSet;
use super::table::CalibrationParameters;
use crate::metrics::{Class, best_thresholds};
use crate::scored::{Dimension, ScoredExample};

/// A score is right when it lies within so many points of the label.
const CLOSE: f64 = 1.0;

/// By end state and dimension, the share of conversations that were scored within one point of the label, drawn to
/// a prior, in hundredths. `crossed` holds scores by weights that had not seen the conversation.
pub(super) fn agreement(
    sets: &[DataSet],
    crossed: &[Vec<ScoredExample>],
    parameters: &CalibrationParameters,
) -> BTreeMap<String, PerDimension<f64>> {
    let share = |end: &str, dimension: Dimension| {
        let (mut close, mut all) = (0.0, 0.0);
        for (set, scored) in sets.iter().zip(crossed) {
            let weight = set.rules.rule(dimension).calibration_weight;
            for example in scored.iter().filter(|example| example.end == end) {
                if let Some(label) = dimension.label(&example.label) {
                    all += weight;
                    close += weight * is_close(label, *dimension.of(&example.scores));
                }
            }
        }
        shrunk(close, all, parameters)
    };
    let both = |end| PerDimension {
        resolution_accuracy: share(end, Dimension::ResolutionAccuracy),
        interaction_effort: share(end, Dimension::InteractionEffort),
    };
    FeatureReader::end_states().map(|end| (end.to_owned(), both(end))).collect()
}

/// The thresholds that tell the labelled classes apart best, every set counting the same.
pub(super) fn thresholds(crossed: &[Vec<ScoredExample>]) -> ResolutionThresholds {
    let mut labelled: Vec<(Class, f64, f64)> = Vec::new();
    for scored in crossed {
        let weight = 1.0 / scored.len().max(1) as f64;
        let classes = scored.iter().filter_map(|example| {
            Some((example.label.resolution?, example.scores.resolution_accuracy, weight))
        });
        labelled.extend(classes);
    }
    best_thresholds(&labelled)
}

fn is_close(label: f64, score: f64) -> f64 {
    // Scores are tenths: a difference of one point must not fail by the last bit.
    if (label - score).abs() <= CLOSE + 1e-9 { 1.0 } else { 0.0 }
}

fn shrunk(close: f64, all: f64, parameters: &CalibrationParameters) -> f64 {
    let CalibrationParameters { prior, strength, unseen } = *parameters;
    let share = if all > 0.0 { (close + prior * strength) / (all + strength) } else { unseen };
    (share * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_conversations_move_a_share_little_and_none_give_the_cautious_one() {
        let parameters = CalibrationParameters { prior: 0.7, strength: 30.0, unseen: 0.3 };
        assert_eq!(shrunk(0.0, 0.0, &parameters), 0.3);
        assert_eq!(shrunk(0.0, 3.0, &parameters), 0.64);
        assert_eq!(shrunk(270.0, 300.0, &parameters), 0.88);
        assert_eq!((is_close(3.0, 4.0), is_close(2.9, 4.0)), (1.0, 0.0));
    }
}
