//! Adapting the shipped weights to a user's own reviewers.
//!
//! The shipped weights are the prior: few labels move them a little, many move them more, and never against the sign
//! or the bounds of a feature. From 200 labels on, the words themselves may add something. What was gained is measured
//! by cross-validation, every choice included, and a file that agrees less than the shipped one is refused.

mod adapt;
mod report;
mod wording;

use std::collections::BTreeMap;

use assay_scoring::weights_file::{
    Manifest, Mixture, PerDimension, WeightsFile, WordingHead, WordingWeights,
};
use assay_scoring::{BUILTIN_WEIGHTS, FeatureReader, Scorer};

use self::adapt::Adapter;
use self::report::Comparison;
use self::wording::{BITS, Words, fit_head};
use crate::data::{Example, Label, Reviewed};
use crate::metrics::{Class, best_thresholds};
use crate::model::{Bounds, Opening, Schema, mixed_value};
use crate::random::folds;
use crate::rounding::rounded;
use crate::scored::{Dimension, ScoredExample, score};
use crate::shipped::Table;
use crate::write::weights_text;
use crate::{FitError, Fitted};

/// Fewer labels of a dimension leave it as it is.
pub const FEWEST_LABELS: usize = 25;
/// A kind of opening whose share in all labels adds up to fewer of them keeps the shipped model: nothing could be said
/// about it but their chance. With enough labels for a dimension, one of the two always has enough.
const FEWEST_OF_AN_OPENING: f64 = FEWEST_LABELS as f64 / 2.0;
/// So many labels of a dimension are enough for words to be tried.
pub const LABELS_FOR_WORDS: usize = 200;
/// Parts of the cross-validation.
const FOLDS: usize = 5;
/// Seed of the parts.
const FOLD_SEED: u64 = 29;

/// What happens to weights that agree less with the labels than the shipped ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorseWeights {
    /// They are refused.
    Refuse,
    /// They are given all the same.
    Accept,
}

/// Adapts the shipped weights to labels. The same files give the same bytes.
///
/// # Errors
/// When there are fewer than 25 labels of both dimensions, or when what was fitted agrees less than the shipped
/// weights do in every dimension and that is to be refused. A dimension that agrees less stays as it was shipped.
pub fn fit_local(reviewed: &Reviewed, worse: WorseWeights) -> Result<Fitted, FitError> {
    let reader = FeatureReader::builtin()?;
    let fitter = LocalFitter::new(&reader)?;
    let most = Dimension::BOTH.iter().map(|dimension| targets(&reviewed.examples, *dimension)).max();
    let found = most.unwrap_or(0);
    if found < FEWEST_LABELS {
        return Err(FitError::TooFewLabels { found, needed: FEWEST_LABELS, unmatched: reviewed.unmatched });
    }
    let words = Words::of(&reader, &reviewed.examples);
    let labelled: Vec<Dimension> = Dimension::BOTH
        .into_iter()
        .filter(|dimension| targets(&reviewed.examples, *dimension) >= FEWEST_LABELS)
        .collect();
    let crossed = fitter.cross_fit(&reviewed.examples, &words, &labelled)?;
    let before = score(&Scorer::builtin()?, &reviewed.examples);
    let comparison = Comparison::of(&before, &crossed);
    let adapted: Vec<Dimension> = labelled
        .iter()
        .copied()
        .filter(|dimension| worse == WorseWeights::Accept || !comparison.is_worse(*dimension))
        .collect();
    let report = comparison.text(reviewed, &before, &labelled, &adapted);
    if adapted.is_empty() {
        return Err(FitError::Worse { report });
    }
    let all: Vec<usize> = (0..reviewed.examples.len()).collect();
    let mut file = fitter.fit(&reviewed.examples, &words, &all, &adapted);
    fitter.calibrate(&mut file, &crossed, &adapted);
    file.manifest.data = vec![reviewed.entry.clone()];
    file.manifest.figures = comparison.figures();
    Ok(Fitted { text: weights_text(&file)?, report })
}

/// Conversations with a target of the dimension.
fn targets(examples: &[Example], dimension: Dimension) -> usize {
    examples.iter().filter(|example| target(&example.label, dimension).is_some()).count()
}

/// Shares of a kind of opening in the conversations with a target of the dimension, added up.
fn labels_of(examples: &[Example], dimension: Dimension, opening: Opening) -> f64 {
    let labelled = examples.iter().filter(|example| target(&example.label, dimension).is_some());
    labelled.map(|example| opening.share(example.detail)).sum()
}

/// What a dimension is fitted to. A reviewer who only says whether the issue was solved says roughly how accurately.
fn target(label: &Label, dimension: Dimension) -> Option<f64> {
    let by_class = label.resolution.filter(|_| dimension == Dimension::ResolutionAccuracy);
    dimension.label(label).or_else(|| {
        by_class.map(|class| match class {
            Class::NotResolved => 1.5,
            Class::Partial => 3.0,
            Class::Resolved => 4.5,
        })
    })
}

/// What all local fits have in common.
struct LocalFitter {
    shipped: WeightsFile,
    signs: Vec<f64>,
    bounds: PerDimension<Vec<Bounds>>,
    calibration_strength: f64,
}

impl LocalFitter {
    fn new(reader: &FeatureReader) -> Result<Self, FitError> {
        let table = Table::builtin()?;
        let schema = Schema::of(reader);
        // Checked by the engine first: a shipped file that does not fit has a better message there.
        Scorer::builtin()?;
        Ok(Self {
            shipped: serde_json::from_str(BUILTIN_WEIGHTS)?,
            signs: schema.signs(),
            bounds: PerDimension {
                resolution_accuracy: table.bounds(&schema, Dimension::ResolutionAccuracy)?,
                interaction_effort: table.bounds(&schema, Dimension::InteractionEffort)?,
            },
            calibration_strength: table.parameters.calibration.strength,
        })
    }

    /// Fits the adapted dimensions to the chosen examples; the others stay as shipped.
    fn fit(
        &self,
        examples: &[Example],
        words: &Words,
        chosen: &[usize],
        adapted: &[Dimension],
    ) -> WeightsFile {
        let mut parameters = BTreeMap::new();
        let [(resolution_accuracy, accuracy_head), (interaction_effort, effort_head)] =
            Dimension::BOTH.map(|dimension| {
                if adapted.contains(&dimension) {
                    self.fit_dimension(examples, words, chosen, dimension, &mut parameters)
                } else {
                    (dimension.of(&self.shipped.dimensions).clone(), None)
                }
            });
        let heads = PerDimension { resolution_accuracy: accuracy_head, interaction_effort: effort_head };
        let has_head = heads.resolution_accuracy.is_some() || heads.interaction_effort.is_some();
        WeightsFile {
            dimensions: PerDimension { resolution_accuracy, interaction_effort },
            wording: has_head.then_some(WordingWeights { bits: BITS, heads }),
            manifest: Manifest {
                about: "The shipped weights, adapted by `assay fit` to labels of one place.".to_owned(),
                data: Vec::new(),
                parameters,
                figures: BTreeMap::new(),
            },
            ..self.shipped.clone()
        }
    }

    fn fit_dimension(
        &self,
        examples: &[Example],
        words: &Words,
        chosen: &[usize],
        dimension: Dimension,
        parameters: &mut BTreeMap<String, f64>,
    ) -> (Mixture, Option<WordingHead>) {
        let shipped = dimension.of(&self.shipped.dimensions);
        let labelled: Vec<(usize, f64)> = chosen
            .iter()
            .filter_map(|index| Some((*index, target(&examples.get(*index)?.label, dimension)?)))
            .collect();
        let mut note = |name: &str, value: f64| {
            parameters.insert(format!("{}: {name}", dimension.name()), rounded(value));
        };
        note("labels", labelled.len() as f64);
        let mut adapted = |opening: Opening| {
            let model = opening.of(shipped);
            // The labels of all examples count, so that the parts of a cross-validation are fitted like the whole.
            if labels_of(examples, dimension, opening) < FEWEST_OF_AN_OPENING {
                return model.clone();
            }
            let bounds = dimension.of(&self.bounds).as_slice();
            let adapter = Adapter { shipped: model, opening, signs: &self.signs, bounds };
            let (model, strength) = adapter.fit(examples, &labelled);
            note(&format!("prior strength, {}", opening.name()), strength);
            model
        };
        let mixture = Mixture { brief: adapted(Opening::Brief), detailed: adapted(Opening::Detailed) };
        if targets(examples, dimension) < LABELS_FOR_WORDS {
            return (mixture, None);
        }
        let (indices, residuals) = self.residuals(examples, &labelled, &mixture);
        let head = fit_head(words, &indices, &residuals);
        if let Some(head) = &head {
            note("share of words", head.share);
        }
        (mixture, head)
    }

    /// What the models leave over of each label, beside the index of its example.
    fn residuals(
        &self,
        examples: &[Example],
        labelled: &[(usize, f64)],
        mixture: &Mixture,
    ) -> (Vec<usize>, Vec<f64>) {
        let residual = |(index, target): &(usize, f64)| {
            let Example { features, detail, .. } = examples.get(*index)?;
            Some((*index, target - mixed_value(mixture, &self.signs, features, *detail)))
        };
        labelled.iter().filter_map(residual).unzip()
    }

    /// Every example scored by weights that were fitted on the other folds.
    fn cross_fit(
        &self,
        examples: &[Example],
        words: &Words,
        adapted: &[Dimension],
    ) -> Result<Vec<ScoredExample>, FitError> {
        let dealt = folds(examples.len(), FOLDS, FOLD_SEED);
        let mut scored = Vec::new();
        for fold in 0..FOLDS {
            let chosen: Vec<usize> = dealt
                .iter()
                .enumerate()
                .filter(|(_, dealt)| **dealt != fold)
                .map(|(index, _)| index)
                .collect();
            let scorer = Scorer::fitted(&weights_text(&self.fit(examples, words, &chosen, adapted))?)?;
            let kept_back = examples.iter().zip(&dealt).filter(|(_, dealt)| **dealt == fold);
            scored.extend(score(&scorer, kept_back.map(|(example, _)| example)));
        }
        Ok(scored)
    }

    /// Confidence drawn to the shipped one, and thresholds where there are labels enough; of what was adapted.
    fn calibrate(&self, file: &mut WeightsFile, crossed: &[ScoredExample], adapted: &[Dimension]) {
        for (end, agreement) in &mut file.agreement {
            for dimension in adapted {
                let near: Vec<f64> = crossed
                    .iter()
                    .filter(|example| example.end == *end)
                    .filter_map(|example| {
                        let label = dimension.label(&example.label)?;
                        let distance = (label - dimension.of(&example.scores)).abs();
                        Some(f64::from(u8::from(distance <= 1.0 + 1e-9)))
                    })
                    .collect();
                let drawn = |prior: f64| {
                    let strength = self.calibration_strength;
                    let share =
                        (near.iter().sum::<f64>() + prior * strength) / (near.len() as f64 + strength);
                    (share * 100.0).round() / 100.0
                };
                match dimension {
                    Dimension::ResolutionAccuracy => {
                        agreement.resolution_accuracy = drawn(agreement.resolution_accuracy);
                    }
                    Dimension::InteractionEffort => {
                        agreement.interaction_effort = drawn(agreement.interaction_effort);
                    }
                }
            }
        }
        if adapted.contains(&Dimension::ResolutionAccuracy)
            && let Some(labelled) = labelled_classes(crossed)
        {
            file.resolution = Some(best_thresholds(&labelled));
        }
    }
}

/// Labelled classes with scores and weights; `None` when they are too few for thresholds of their own.
fn labelled_classes(scored: &[ScoredExample]) -> Option<Vec<(Class, f64, f64)>> {
    let labelled: Vec<(Class, f64, f64)> = scored
        .iter()
        .filter_map(|example| Some((example.label.resolution?, example.scores.resolution_accuracy, 1.0)))
        .collect();
    let has_all = Class::ALL.iter().all(|class| labelled.iter().any(|(found, _, _)| found == class));
    (labelled.len() >= FEWEST_LABELS && has_all).then_some(labelled)
}
