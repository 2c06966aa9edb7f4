use proptest::prelude::*;

use super::*;
use crate::features::Sign;
use crate::lexicon::Lexicon;
use crate::model::Seen;
use crate::model::file::{SplitWeights, TreeWeights, WordingHead, WordingWeights};
use crate::model::opening::Detail;
use crate::transcript::Transcript;
use crate::{empty_conversation, features_of};

/// All features where nothing was observed.
fn features() -> Vec<Feature> {
    let lexicon = Lexicon::builtin().unwrap();
    features_of(&Transcript::read(&lexicon, &empty_conversation())).0
}

fn shipped() -> WeightsFile {
    serde_json::from_str(BUILTIN_WEIGHTS).unwrap()
}

fn parse(file: &WeightsFile) -> Result<Weights, WeightsError> {
    Weights::parse(&serde_json::to_string(file).unwrap(), &features())
}

#[test]
fn the_shipped_weights_fit_this_version() {
    let fits = Weights::builtin(&features());
    assert!(
        fits.is_ok(),
        "{}\n\nThe phrase lists or the features were changed since the weights were fitted. Fit them again with:\n\n    \
         make weights\n",
        fits.unwrap_err()
    );
    assert!(
        BUILTIN_WEIGHTS.len() < 200_000,
        "the weights file is embedded: {} bytes are too many",
        BUILTIN_WEIGHTS.len()
    );
}

#[test]
fn no_signal_code_stands_for_both_directions() {
    let features = features();
    for one in &features {
        let other = features.iter().find(|other| other.code == one.code && other.sign != one.sign);
        assert!(
            other.is_none(),
            "{} and {:?} would cancel out",
            one.name,
            other.map(|other| other.name.to_string())
        );
    }
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_what_to_do() {
    type Change = fn(&mut WeightsFile);
    let cases: [(Change, &[&str]); 14] = [
        (|file| file.format = 1, &["format 1", "has 2", "make weights"]),
        (|file| file.scorer_version = "0.9.9".to_owned(), &["scorer version 0.9.9", SCORER_VERSION]),
        (|file| file.lexicon_sha256 = "00".repeat(32), &["phrase lists 0000", "assay fit"]),
        (
            |file| file.features[3].0 = "end.refused".to_owned(),
            &["feature 4 is `end.refused (+1)`", "fit it again"],
        ),
        (|file| file.features[0].1 = -1, &["feature 1 is", "(-1)`", "(+1)`"]),
        (|file| file.features.swap(0, 1), &["feature 1 is"]),
        (|file| file.features.truncate(5), &["feature 6 is `nothing`"]),
        (
            |file| file.dimensions.interaction_effort.detailed.weights[7] = -0.1,
            &["-0.1", "interaction_effort.detailed", "not negative"],
        ),
        (|file| file.dimensions.interaction_effort.brief.weights.truncate(3), &["weights for", "features"]),
        (
            |file| file.dimensions.resolution_accuracy.detailed.tree_share = 1.5,
            &["share of resolution_accuracy.detailed is 1.5"],
        ),
        (
            |file| file.dimensions.resolution_accuracy.brief.tree_scale = -1.0,
            &["tree_scale of resolution_accuracy.brief"],
        ),
        (
            |file| file.agreement.retain(|end, _| end != "gave_up"),
            &["no confidence for the end state `gave_up`"],
        ),
        (
            |file| {
                file.resolution = Some(ResolutionThresholds { not_resolved_below: 4.0, resolved_above: 3.0 });
            },
            &["resolution thresholds"],
        ),
        (
            |file| {
                let head = WordingHead { share: 0.5, weights: vec![(1, 0.5)] };
                let heads = PerDimension { resolution_accuracy: Some(head), interaction_effort: None };
                file.wording = Some(WordingWeights { bits: 12, heads });
            },
            &["weights of words"],
        ),
    ];
    for (change, reasons) in cases {
        let mut file = shipped();
        change(&mut file);
        let refused = parse(&file).unwrap_err().to_string();
        for reason in reasons {
            assert!(refused.contains(reason), "{refused}: misses {reason}");
        }
    }
}

#[test]
fn a_file_without_a_format_or_with_a_number_that_is_none_is_refused() {
    let features = features();
    let refused = |text: &str| Weights::parse(text, &features).unwrap_err().to_string();
    assert!(refused("{\"families\": []}").contains("format 0"), "the format of a year ago had no number");
    assert!(refused("[").contains("cannot be read"));
    let text = BUILTIN_WEIGHTS.replacen("\"intercept\": ", "\"intercept\": 1e999, \"x\": ", 1);
    assert!(refused(&text).contains("cannot be read"));
}

#[test]
fn a_tree_that_cannot_be_is_refused_by_its_place() {
    let features = features();
    let raises = features.iter().position(|feature| feature.sign == Sign::Raises).unwrap();
    let split = |threshold, low, high| SplitWeights(raises, threshold, low, high);
    let cases = [
        (TreeWeights(vec![split(0.5, -1, -2)], vec![5, 4]), "not monotone"),
        (TreeWeights(vec![split(-0.5, -1, -2)], vec![4, 5]), "threshold"),
        (TreeWeights(vec![split(0.5, -1, -1)], vec![4, 5]), "make up one tree"),
        (TreeWeights(vec![split(0.5, -1, 0)], vec![4, 5]), "make up one tree"),
        (TreeWeights(vec![split(0.5, -1, -3)], vec![4, 5]), "make up one tree"),
        (TreeWeights(vec![], vec![4]), "make up one tree"),
        (TreeWeights(vec![SplitWeights(9_999, 0.5, -1, -2)], vec![4, 5]), "not in the list"),
    ];
    for (tree, reason) in cases {
        let mut file = shipped();
        file.dimensions.resolution_accuracy.brief.trees.insert(1, tree);
        let refused = parse(&file).unwrap_err().to_string();
        assert!(
            refused.contains("tree 2 of resolution_accuracy.brief") && refused.contains(reason),
            "{refused}"
        );
    }
}

#[test]
fn other_weights_have_another_hash() {
    let mut file = shipped();
    let one = parse(&file).unwrap();
    file.manifest.about.push('.');
    assert_ne!(one.sha256(), parse(&file).unwrap().sha256());
    assert_eq!(one.sha256().len(), 64);
}

/// Some values for features, most of them zero as in real conversations.
fn values() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![3 => Just(0.0), 1 => 0.0..1.0, 1 => prop::sample::select(vec![0.5, 1.0, 2.0_f64.ln(), 3.0])];
    prop::collection::vec(value, features().len())
}

/// Openings of all kinds: either model alone, and both together.
fn detail() -> impl Strategy<Value = Detail> {
    (0u32..60).prop_map(Detail::of_words)
}

fn seen(values: &[f64], detail: Detail) -> Seen {
    let features =
        features().into_iter().zip(values).map(|(feature, value)| Feature { value: *value, ..feature });
    Seen { features: features.collect(), detail, wording: Vec::new() }
}

/// Nothing observed, and an opening of some length.
fn nothing(detail: Detail) -> Seen {
    seen(&vec![0.0; features().len()], detail)
}

/// The value of a dimension for a detail, worked out plainly from the file.
fn plain_mixture(mixture: &Mixture, seen: &Seen) -> f64 {
    let detail = seen.detail.share();
    (1.0 - detail) * plain_value(&mixture.brief, &seen.features)
        + detail * plain_value(&mixture.detailed, &seen.features)
}

/// The value of a model, worked out plainly from the file.
fn plain_value(model: &ModelWeights, features: &[Feature]) -> f64 {
    let linear: f64 = features
        .iter()
        .zip(&model.weights)
        .map(|(feature, weight)| feature.sign.factor() * weight * feature.value)
        .sum();
    let leaf = |TreeWeights(splits, leaves): &TreeWeights| {
        let mut target = 0i64;
        while target >= 0 {
            let SplitWeights(feature, threshold, low, high) = splits[target as usize];
            target = if features[feature].value > threshold { high } else { low };
        }
        leaves[(-1 - target) as usize] as f64 * 1e-5
    };
    let trees: f64 = model.trees.iter().map(leaf).sum();
    (1.0 - model.tree_share) * (model.intercept + linear)
        + model.tree_share * (model.tree_intercept + model.tree_scale * trees)
}

const BOTH: [ModelledDimension; 2] =
    [ModelledDimension::ResolutionAccuracy, ModelledDimension::InteractionEffort];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn contributions_have_the_sign_of_their_features_and_add_up_to_the_value(
        values in values(),
        detail in detail(),
    ) {
        let weights = Weights::builtin(&features()).unwrap();
        let file = shipped();
        let seen = seen(&values, detail);
        for (dimension, mixture) in BOTH.into_iter().zip([
            &file.dimensions.resolution_accuracy,
            &file.dimensions.interaction_effort,
        ]) {
            let estimate = weights.estimate(dimension, &seen);
            let sum: f64 = estimate.contributions.iter().map(|(_, points)| points).sum();
            prop_assert!((estimate.baseline + sum - estimate.value).abs() < 1e-9);
            prop_assert!((plain_mixture(mixture, &seen) - estimate.value).abs() < 1e-9);
            for (code, points) in &estimate.contributions {
                let feature = seen.features.iter().find(|feature| feature.code == *code).unwrap();
                prop_assert!(points * feature.sign.factor() >= 0.0, "{code}: {points}");
            }
        }
    }

    #[test]
    fn a_higher_value_never_moves_a_score_against_its_sign(
        values in values(),
        detail in detail(),
        place in any::<prop::sample::Index>(),
        by in 0.001..2.0,
    ) {
        let weights = Weights::builtin(&features()).unwrap();
        let place = place.index(values.len());
        let mut raised = values.clone();
        raised[place] += by;
        for dimension in BOTH {
            let before = weights.estimate(dimension, &seen(&values, detail)).value;
            let after = weights.estimate(dimension, &seen(&raised, detail)).value;
            let sign = seen(&values, detail).features[place].sign.factor();
            prop_assert!((after - before) * sign >= 0.0, "{place}: {before} -> {after}");
        }
    }
}

#[test]
fn nothing_observed_is_the_baseline_without_contributions() {
    let weights = Weights::builtin(&features()).unwrap();
    for words in [0, 28, 90] {
        let seen = nothing(Detail::of_words(words));
        let estimate = weights.estimate(ModelledDimension::ResolutionAccuracy, &seen);
        assert!((estimate.value - estimate.baseline).abs() < 1e-9);
        assert!(estimate.contributions.iter().all(|(_, points)| *points == 0.0));
    }
}

#[test]
fn the_opening_decides_which_model_is_heard() {
    let mut file = shipped();
    let (brief, detailed) = {
        let Mixture { brief, detailed } = &mut file.dimensions.interaction_effort;
        (brief.tree_intercept, detailed.tree_intercept) = (2.0, 4.0);
        (plain_value(brief, &features()), plain_value(detailed, &features()))
    };
    let weights = parse(&file).unwrap();
    for (words, value) in [(12, brief), (44, detailed), (28, (brief + detailed) / 2.0)] {
        let estimate =
            weights.estimate(ModelledDimension::InteractionEffort, &nothing(Detail::of_words(words)));
        assert!((estimate.value - value).abs() < 1e-9, "{words} words: {estimate:?}");
    }
}

#[test]
fn words_move_a_score_by_their_weights_and_within_one_point() {
    let mut file = shipped();
    let head = |weight| WordingHead { share: 0.25, weights: vec![(3, weight), (9, 2.0)] };
    let heads = |weight| PerDimension { resolution_accuracy: Some(head(weight)), interaction_effort: None };
    let words = |weight: f64, file: &mut WeightsFile| {
        file.wording = Some(WordingWeights { bits: 12, heads: heads(weight) });
        let seen = Seen { wording: vec![(3, 0.5), (4, 0.5)], ..nothing(Detail::of_words(20)) };
        let weights = parse(file).unwrap();
        let effort = weights.estimate(ModelledDimension::InteractionEffort, &seen);
        assert!(effort.contributions.iter().all(|(code, _)| *code != "LOCAL_WORDING"));
        let accuracy = weights.estimate(ModelledDimension::ResolutionAccuracy, &seen);
        let (code, points) = *accuracy.contributions.last().unwrap();
        assert_eq!(code, "LOCAL_WORDING");
        assert!((accuracy.value - accuracy.baseline - points).abs() < 1e-9);
        points
    };
    assert!((words(-0.8, &mut file) + 0.1).abs() < 1e-12);
    assert!((words(80.0, &mut file) - 1.0).abs() < 1e-12);
}
