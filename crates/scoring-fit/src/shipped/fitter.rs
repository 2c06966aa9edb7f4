//! From data sets to weights files and scorers.

use std::collections::BTreeMap;

use assay_scoring::weights_file::{FORMAT, Manifest, Mixture, PerDimension, WeightsFile};
use assay_scoring::{FeatureReader, SCORER_VERSION, Scorer};

use super::data_set::DataSet;
use super::table::{DataSetRules, Table};
use crate::FitError;
use crate::data::Example;
use crate::model::{Bounds, Row, Schema, fit_mixture};
use crate::random::folds;
use crate::scored::{Dimension, ScoredExample, score};
use crate::write::weights_text;

/// Everything that fits have in common.
#[derive(Debug)]
pub(crate) struct Fitter {
    pub table: Table,
    schema: Schema,
    bounds: PerDimension<Vec<Bounds>>,
}

/// Some examples of a data set.
#[derive(Debug, Clone)]
pub(crate) struct Part<'d> {
    pub rules: &'d DataSetRules,
    pub examples: Vec<&'d Example>,
}

impl<'d> Part<'d> {
    /// Those that may be fitted on.
    pub(crate) fn train(set: &'d DataSet) -> Self {
        let pairs = set.examples.iter().zip(&set.is_train);
        let examples = pairs.filter(|(_, train)| **train).map(|(example, _)| example).collect();
        Self { rules: &set.rules, examples }
    }

    /// All of them.
    pub(crate) fn all(set: &'d DataSet) -> Self {
        Self { rules: &set.rules, examples: set.examples.iter().collect() }
    }
}

impl Fitter {
    pub(crate) fn new(reader: &FeatureReader, table: Table) -> Result<Self, FitError> {
        let schema = Schema::of(reader);
        let bounds = PerDimension {
            resolution_accuracy: table.bounds(&schema, Dimension::ResolutionAccuracy)?,
            interaction_effort: table.bounds(&schema, Dimension::InteractionEffort)?,
        };
        Ok(Self { table, schema, bounds })
    }

    /// Models of both dimensions. Every set has its weight, however many examples it has.
    pub(crate) fn models(&self, parts: &[Part<'_>]) -> PerDimension<Mixture> {
        let mixture = |dimension: Dimension| {
            let mut rows = Vec::new();
            for part in parts {
                let weight = part.rules.rule(dimension).weight / part.examples.len().max(1) as f64;
                for example in &part.examples {
                    if let Some(target) = dimension.label(&example.label) {
                        let Example { features, detail, .. } = example;
                        rows.push(Row { features, target, weight, detail: *detail });
                    }
                }
            }
            let bounds = dimension.of(&self.bounds);
            fit_mixture(&rows, &self.schema, bounds, &self.table.parameters.model())
        };
        PerDimension {
            resolution_accuracy: mixture(Dimension::ResolutionAccuracy),
            interaction_effort: mixture(Dimension::InteractionEffort),
        }
    }

    /// A file with these models that says nothing yet about confidence and thresholds.
    pub(crate) fn file(&self, dimensions: PerDimension<Mixture>) -> WeightsFile {
        let prior = self.table.parameters.calibration.prior;
        let uncalibrated = PerDimension { resolution_accuracy: prior, interaction_effort: prior };
        WeightsFile {
            format: FORMAT,
            scorer_version: SCORER_VERSION.to_owned(),
            lexicon_sha256: FeatureReader::lexicon_sha256(),
            features: self.schema.entries(),
            dimensions,
            agreement: FeatureReader::end_states().map(|end| (end.to_owned(), uncalibrated)).collect(),
            resolution: None,
            wording: None,
            manifest: Manifest {
                about: String::new(),
                data: Vec::new(),
                parameters: BTreeMap::new(),
                figures: BTreeMap::new(),
            },
        }
    }

    /// A scorer that was fitted on these examples.
    pub(crate) fn scorer(&self, parts: &[Part<'_>]) -> Result<Scorer, FitError> {
        Ok(Scorer::fitted(&weights_text(&self.file(self.models(parts)))?)?)
    }

    /// Every example scored by weights that were fitted on the other folds: by part, in the order of the examples,
    /// but for those without AXIS.
    pub(crate) fn cross_fit(&self, parts: &[Part<'_>]) -> Result<Vec<Vec<ScoredExample>>, FitError> {
        let parameters = &self.table.parameters;
        let dealt: Vec<Vec<usize>> = parts
            .iter()
            .map(|part| folds(part.examples.len(), parameters.folds, parameters.fold_seed))
            .collect();
        let mut scored: Vec<Vec<ScoredExample>> = parts.iter().map(|_| Vec::new()).collect();
        for fold in 0..parameters.folds {
            let chosen = |inside: bool| -> Vec<Part<'_>> {
                let parts = parts.iter().zip(&dealt);
                parts.map(|(part, dealt)| part.fold(dealt, fold, inside)).collect()
            };
            let scorer = self.scorer(&chosen(false))?;
            for (scored, part) in scored.iter_mut().zip(chosen(true)) {
                scored.extend(score(&scorer, part.examples));
            }
        }
        Ok(scored)
    }
}

impl<'d> Part<'d> {
    /// The examples inside or outside of a fold.
    fn fold(&self, dealt: &[usize], fold: usize, inside: bool) -> Self {
        let pairs = self.examples.iter().zip(dealt);
        let examples =
            pairs.filter(|(_, dealt)| (**dealt == fold) == inside).map(|(example, _)| *example).collect();
        Self { rules: self.rules, examples }
    }
}
