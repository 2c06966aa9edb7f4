//! What a weights file must keep to, and what is said about one that does not.

use super::file::ResolutionThresholds;
use super::trees::TreeError;
use crate::features::{Feature, Sign};

/// Why a weights file was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// It is not the JSON that is expected.
    #[error("it cannot be read: {0}; make it with `assay fit`")]
    Json(#[from] serde_json::Error),
    /// It was made for another version.
    #[error(
        "it was fitted for {subject} {found}, and this version has {expected}: fit it again (`make weights` for \
         the shipped file, `assay fit` for one of your own)"
    )]
    Version {
        /// What differs.
        subject: &'static str,
        /// What the file says.
        found: String,
        /// What would fit.
        expected: String,
    },
    /// The features are not those of this version.
    #[error(
        "its feature {place} is `{found}` where this version has `{expected}`: fit it again (`make weights` for the \
         shipped file, `assay fit` for one of your own)"
    )]
    Feature {
        /// Place in the list, from 1.
        place: usize,
        /// Name and sign in the file, or `nothing`.
        found: String,
        /// Name and sign that would fit, or `nothing`.
        expected: String,
    },
    /// A number that cannot be.
    #[error("its {what} is {value}, and {rule}: correct it or fit the file again")]
    Number {
        /// Which number.
        what: String,
        /// What it is.
        value: f64,
        /// What it must be.
        rule: &'static str,
    },
    /// A list with the wrong number of entries.
    #[error("it has {found} weights for {expected} features: fit it again with `assay fit`")]
    Length {
        /// Weights in the file.
        found: usize,
        /// Features of this version.
        expected: usize,
    },
    /// A tree that cannot be used.
    #[error("its tree {place} of {model} cannot be used: {reason}; fit it again with `assay fit`")]
    Tree {
        /// Which model: dimension and kind of opening.
        model: &'static str,
        /// Place in the list of trees, from 1.
        place: usize,
        /// What is wrong.
        reason: TreeError,
    },
    /// A state without a confidence.
    #[error("it has no confidence for the end state `{0}`: fit it again with `assay fit`")]
    Confidence(&'static str),
    /// The weights of words cannot be used.
    #[error(
        "its weights of words cannot be used (bits, share, order or a number): fit it again with `assay fit`"
    )]
    Wording,
}

/// Whether something that must be equal is.
pub(super) fn check_version(subject: &'static str, found: &str, expected: &str) -> Result<(), WeightsError> {
    if found == expected {
        return Ok(());
    }
    Err(WeightsError::Version { subject, found: found.to_owned(), expected: expected.to_owned() })
}

/// Whether the features are the same ones with the same signs in the same order.
pub(super) fn check_features(found: &[(String, i8)], expected: &[Feature]) -> Result<(), WeightsError> {
    let described = |name: String, raises: bool| format!("{name} ({})", if raises { "+1" } else { "-1" });
    let mut found = found.iter().map(|(name, sign)| match sign {
        1 | -1 => described(name.clone(), *sign == 1),
        _ => format!("{name} ({sign})"),
    });
    let mut expected =
        expected.iter().map(|feature| described(feature.name.to_string(), feature.sign == Sign::Raises));
    for place in 1.. {
        let (found, expected) = (found.next(), expected.next());
        if found == expected && found.is_none() {
            break;
        }
        if found != expected {
            let or_nothing = |name: Option<String>| name.unwrap_or_else(|| "nothing".to_owned());
            return Err(WeightsError::Feature {
                place,
                found: or_nothing(found),
                expected: or_nothing(expected),
            });
        }
    }
    Ok(())
}

/// Whether a number is a magnitude: finite and not negative.
pub(super) fn check_magnitude(what: impl FnOnce() -> String, value: f64) -> Result<(), WeightsError> {
    if value.is_finite() && value >= 0.0 {
        return Ok(());
    }
    let rule = "it must be finite and not negative: the direction belongs to the feature";
    Err(WeightsError::Number { what: what(), value, rule })
}

/// Whether a number is a share.
pub(super) fn check_share(what: &str, value: f64) -> Result<(), WeightsError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    let what = format!("share of {what}");
    Err(WeightsError::Number { what, value, rule: "a share lies between 0 and 1" })
}

/// Whether the thresholds can be thresholds of a score.
pub(super) fn check_thresholds(thresholds: ResolutionThresholds) -> Result<(), WeightsError> {
    let ResolutionThresholds { not_resolved_below, resolved_above } = thresholds;
    if (1.0..=5.0).contains(&not_resolved_below) && (not_resolved_below..=5.0).contains(&resolved_above) {
        return Ok(());
    }
    Err(WeightsError::Number {
        what: "pair of resolution thresholds".to_owned(),
        value: not_resolved_below,
        rule: "both lie between 1 and 5, not_resolved_below first",
    })
}
