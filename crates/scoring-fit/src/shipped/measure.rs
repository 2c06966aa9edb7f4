//! How well shipped weights do: on what was kept back, within each set, and on sets that they have not seen.

use assay_scoring::Scorer;
use assay_scoring::weights_file::PerDimension;

use super::data_set::DataSet;
use super::fitter::{Fitter, Part};
use crate::FitError;
use crate::metrics::{Agreement, Confusion};
use crate::scored::{
    Dimension, ScoredExample, bare_agreement, confusion, crossed_confusion, engine_agreement, score,
};

/// All figures.
#[derive(Debug)]
pub(super) struct Measured<'d> {
    pub rows: Vec<Row<'d>>,
    pub classes: Vec<ClassRow<'d>>,
}

/// One data set and dimension.
#[derive(Debug)]
pub(super) struct Row<'d> {
    pub data: &'d str,
    pub dimension: Dimension,
    pub goal: Option<f64>,
    /// By the weights of all `train` parts, on what was kept back.
    pub kept_back: Both,
    /// By weights of the same set's other folds.
    pub within: Both,
    /// By weights of the other sets; only where they have labels that measure the dimension.
    pub unseen: Option<Both>,
}

/// The models alone, and the engine with its guards.
#[derive(Debug, Clone, Copy)]
pub(super) struct Both {
    pub bare: Agreement,
    pub engine: Agreement,
}

/// Was it resolved, of one data set.
#[derive(Debug)]
pub(super) struct ClassRow<'d> {
    pub data: &'d str,
    pub goal: f64,
    /// By the audit, on what was kept back.
    pub audit: Confusion,
    /// By the thresholds of the weights, on what was kept back.
    pub by_score: Confusion,
    /// By thresholds of the set's own other folds.
    pub within: Confusion,
}

impl<'d> Measured<'d> {
    pub(super) fn of(
        fitter: &Fitter,
        sets: &'d [DataSet],
        scorer: &Scorer,
    ) -> Result<Measured<'d>, FitError> {
        let (mut rows, mut classes) = (Vec::new(), Vec::new());
        for (index, set) in sets.iter().enumerate() {
            let kept_back = score(scorer, set.kept_back());
            let crossed = fitter.cross_fit(&[Part::all(set)])?;
            let within = crossed.first().map(Vec::as_slice).unwrap_or_default();
            let others: Vec<&DataSet> = sets
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index)
                .map(|(_, other)| other)
                .collect();
            let parts: Vec<Part<'_>> = others.iter().map(|other| Part::all(other)).collect();
            let unseen = score(&fitter.scorer(&parts)?, &set.examples);
            for dimension in Dimension::BOTH {
                let rule = set.rules.rule(dimension);
                let others_measure = others.iter().any(|other| other.rules.rule(dimension).measured);
                let row = || {
                    Some(Row {
                        data: &set.rules.name,
                        dimension,
                        goal: rule.goal,
                        kept_back: Both::of(&kept_back, dimension)?,
                        within: Both::of(within, dimension)?,
                        unseen: Both::of(&unseen, dimension).filter(|_| others_measure),
                    })
                };
                rows.extend(row().filter(|_| rule.measured));
            }
            classes.extend(ClassRow::of(set, &kept_back, within));
        }
        Ok(Measured { rows, classes })
    }

    /// Mean rho of the engine on sets that were left out.
    pub(super) fn unseen_mean(&self) -> PerDimension<Option<f64>> {
        let mean = |dimension: Dimension| {
            let rows = self.rows.iter().filter(|row| row.dimension == dimension);
            let values: Vec<f64> =
                rows.filter_map(|row| row.unseen.map(|unseen| unseen.engine.rho)).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        PerDimension {
            resolution_accuracy: mean(Dimension::ResolutionAccuracy),
            interaction_effort: mean(Dimension::InteractionEffort),
        }
    }
}

impl Both {
    fn of(scored: &[ScoredExample], dimension: Dimension) -> Option<Self> {
        Some(Self { bare: bare_agreement(scored, dimension)?, engine: engine_agreement(scored, dimension)? })
    }
}

impl<'d> ClassRow<'d> {
    fn of(set: &'d DataSet, kept_back: &[ScoredExample], within: &[ScoredExample]) -> Option<Self> {
        Some(Self {
            data: &set.rules.name,
            goal: set.rules.classes.goal,
            audit: confusion(kept_back, |example| Some(example.audit))?,
            by_score: confusion(kept_back, |example| example.by_score)?,
            within: crossed_confusion(within)?,
        })
    }
}
