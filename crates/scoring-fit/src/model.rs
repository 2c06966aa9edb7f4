//! Fitting a dimension: a model for each kind of opening, each of a sign-constrained linear part and monotone trees.

use assay_scoring::weights_file::{LEAF_UNIT, Mixture, ModelWeights};
use assay_scoring::{FeatureReader, FeatureValue};

use crate::boosting::{BoostingExample, BoostingParameters, boost, leaf};
use crate::least_squares::{Coefficient, Observation, solve};
use crate::rounding::rounded;

/// Added to the spread of a feature, so that a rare one is not blown up.
const LEAST_SPREAD: f64 = 0.05;
/// Weights below it are noise and are left out.
const SMALLEST_WEIGHT: f64 = 5e-4;

/// The features that models see.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub features: Vec<FeatureValue>,
}

/// How a model is fitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelParameters {
    /// Ridge strength on standardised features.
    pub ridge: f64,
    /// Share of the trees in the score.
    pub tree_share: f64,
    /// Share that a row has in each of the two models at least: a kind of opening that a data set has little of
    /// learns from the other kind.
    pub least_share: f64,
    pub boosting: BoostingParameters,
}

/// The least and the most that the weight of a feature may be, in points for one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bounds {
    pub least: f64,
    pub most: f64,
}

/// One example of one dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'v> {
    pub features: &'v [f64],
    pub target: f64,
    pub weight: f64,
    /// How detailed the customer's opening is, 0–1.
    pub detail: f64,
}

/// Which of a dimension's two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    Brief,
    Detailed,
}

impl Opening {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Brief => "brief openings",
            Self::Detailed => "detailed openings",
        }
    }

    /// Its share in the score of a conversation.
    pub(crate) fn share(self, detail: f64) -> f64 {
        match self {
            Self::Brief => 1.0 - detail,
            Self::Detailed => detail,
        }
    }

    /// Its model.
    pub(crate) const fn of(self, mixture: &Mixture) -> &ModelWeights {
        match self {
            Self::Brief => &mixture.brief,
            Self::Detailed => &mixture.detailed,
        }
    }
}

impl Schema {
    pub(crate) fn of(reader: &FeatureReader) -> Self {
        Self { features: reader.feature_list() }
    }

    pub(crate) fn signs(&self) -> Vec<f64> {
        self.features.iter().map(|feature| feature.sign).collect()
    }

    /// Names and signs as a weights file has them.
    pub(crate) fn entries(&self) -> Vec<(String, i8)> {
        let sign = |feature: &FeatureValue| if feature.sign > 0.0 { 1 } else { -1 };
        self.features.iter().map(|feature| (feature.name.clone(), sign(feature))).collect()
    }
}

/// Fits both models, each to all rows by its share in them.
pub(crate) fn fit_mixture(
    rows: &[Row<'_>],
    schema: &Schema,
    bounds: &[Bounds],
    parameters: &ModelParameters,
) -> Mixture {
    let model = |opening: Opening| {
        let shared: Vec<Row<'_>> = rows
            .iter()
            .map(|row| {
                let share = opening.share(row.detail).max(parameters.least_share);
                Row { weight: row.weight * share, ..*row }
            })
            .collect();
        fit_model(&shared, schema, bounds, parameters)
    };
    Mixture { brief: model(Opening::Brief), detailed: model(Opening::Detailed) }
}

/// What a mixture says about features, in points.
pub(crate) fn mixed_value(mixture: &Mixture, signs: &[f64], features: &[f64], detail: f64) -> f64 {
    let said = |opening: Opening| match opening.share(detail) {
        share if share > 0.0 => share * value(opening.of(mixture), signs, features),
        _ => 0.0,
    };
    said(Opening::Brief) + said(Opening::Detailed)
}

fn value(model: &ModelWeights, signs: &[f64], features: &[f64]) -> f64 {
    let effects = features.iter().zip(signs).zip(&model.weights);
    let linear: f64 = effects.map(|((value, sign), weight)| sign * weight * value).sum();
    let leaves: i64 = model.trees.iter().map(|tree| leaf(tree, features)).sum();
    (1.0 - model.tree_share) * (model.intercept + linear)
        + model.tree_share * (model.tree_intercept + model.tree_scale * LEAF_UNIT * leaves as f64)
}

/// Fits both parts of a model to the same rows.
fn fit_model(
    rows: &[Row<'_>],
    schema: &Schema,
    bounds: &[Bounds],
    parameters: &ModelParameters,
) -> ModelWeights {
    let signs = schema.signs();
    let (intercept, weights) = fit_linear(rows, &signs, bounds, parameters.ridge);
    let examples: Vec<BoostingExample<'_>> = rows
        .iter()
        .map(|row| BoostingExample { values: row.features, target: row.target, weight: row.weight })
        .collect();
    let boosted = boost(&examples, &signs, &parameters.boosting);
    ModelWeights {
        intercept,
        weights,
        tree_share: parameters.tree_share,
        tree_intercept: boosted.intercept,
        tree_scale: 1.0,
        trees: boosted.trees,
    }
}

/// Spread of every feature over the rows: standard deviation and a little.
pub(crate) fn spreads(rows: &[Row<'_>], features: usize) -> Vec<f64> {
    let count = rows.len().max(1) as f64;
    let column = |feature: usize| rows.iter().filter_map(move |row| row.features.get(feature).copied());
    let spread = |feature: usize| {
        let mean = column(feature).sum::<f64>() / count;
        let variance = column(feature).map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        variance.sqrt() + LEAST_SPREAD
    };
    (0..features).map(spread).collect()
}

/// Bounded ridge on features divided by their spread and turned to their sign.
fn fit_linear(rows: &[Row<'_>], signs: &[f64], bounds: &[Bounds], ridge: f64) -> (f64, Vec<f64>) {
    let spreads = spreads(rows, signs.len());
    let known: Vec<Coefficient> = bounds
        .iter()
        .zip(&spreads)
        .map(|(bounds, spread)| Coefficient {
            least: bounds.least * spread,
            most: bounds.most * spread,
            prior: 0.0,
        })
        .collect();
    let standardised: Vec<Vec<f64>> = rows.iter().map(|row| standardise(row, signs, &spreads)).collect();
    let total: f64 = rows.iter().map(|row| row.weight).sum();
    let observations: Vec<Observation<'_>> = rows
        .iter()
        .zip(&standardised)
        .map(|(row, values)| Observation {
            values,
            target: row.target,
            weight: row.weight * rows.len() as f64 / total,
        })
        .collect();
    let solution = solve(&observations, &known, ridge);
    let weights = solution.coefficients.iter().zip(&spreads).map(|(coefficient, spread)| {
        let weight = rounded(coefficient / spread);
        if weight < SMALLEST_WEIGHT { 0.0 } else { weight }
    });
    (rounded(solution.intercept), weights.collect())
}

/// The features of a row, turned to their sign and divided by their spread.
pub(crate) fn standardise(row: &Row<'_>, signs: &[f64], spreads: &[f64]) -> Vec<f64> {
    let features = row.features.iter().zip(signs).zip(spreads);
    features.map(|((value, sign), spread)| sign * value / spread).collect()
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::Conversation;
    use assay_scoring::weights_file::WeightsFile;
    use assay_scoring::{BUILTIN_WEIGHTS, Scorer};

    use super::*;
    use crate::data::{Example, Label};

    #[test]
    fn a_mixture_says_what_the_engine_says() {
        let reader = FeatureReader::builtin().unwrap();
        let signs = Schema::of(&reader).signs();
        let shipped: WeightsFile = serde_json::from_str(BUILTIN_WEIGHTS).unwrap();
        let mut details = Vec::new();
        for repeated in [1, 5, 12] {
            let body = serde_json::json!({"ticket_id": "t", "source": "s", "messages": [
                {"author": {"type": "contact", "external_id": "c"}, "kind": "message", "timestamp": 1,
                    "content": "My router blinks red. ".repeat(repeated), "external_id": "m1"},
                {"author": {"type": "ai", "external_id": "a"}, "kind": "message", "timestamp": 2,
                    "content": "Please restart the router.", "external_id": "m2"},
                {"author": {"type": "contact", "external_id": "c"}, "kind": "message", "timestamp": 3,
                    "content": "It is still red.", "external_id": "m3"},
            ]});
            let conversation = Conversation::parse(body.to_string().as_bytes()).unwrap();
            let engine = Scorer::builtin().unwrap().estimate(&conversation);
            let Example { features, detail, .. } = Example::new(&reader, conversation, Label::default());
            let fits = |mixture: &Mixture, said: f64| {
                (mixed_value(mixture, &signs, &features, detail) - said).abs() < 1e-9
            };
            assert!(fits(&shipped.dimensions.resolution_accuracy, engine.resolution_accuracy), "{detail}");
            assert!(fits(&shipped.dimensions.interaction_effort, engine.interaction_effort), "{detail}");
            details.push(detail);
        }
        assert_eq!(details, [0.0, 0.25, 1.0], "either model alone, and both");
    }
}
