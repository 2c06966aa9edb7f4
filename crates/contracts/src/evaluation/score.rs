//! Scores and confidences in fixed steps, so that equal results have equal bytes.

use serde::{Deserialize, Serialize};

/// A score between 1.0 and 5.0 in tenths; higher is better. Written as a number with one decimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score {
    tenths: u8,
}

impl Score {
    /// The worst score.
    pub const MIN: Self = Self { tenths: 10 };
    /// The best score.
    pub const MAX: Self = Self { tenths: 50 };

    /// Every score, from the worst to the best.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::MIN.tenths..=Self::MAX.tenths).map(|tenths| Self { tenths })
    }

    /// The nearest score: rounded half up to tenths, clamped to 1.0 to 5.0. NaN becomes 1.0.
    pub fn nearest(value: f64) -> Self {
        let tenths = (value * 10.0 + 0.5).floor().clamp(10.0, 50.0);
        // A NaN passes clamp and converts to 0.
        Self { tenths: (tenths as u8).max(10) }
    }

    /// The score of `tenths` tenths; `None` outside of 10 to 50.
    pub fn from_tenths(tenths: i64) -> Option<Self> {
        let tenths = u8::try_from(tenths).ok().filter(|tenths| (10..=50).contains(tenths))?;
        Some(Self { tenths })
    }

    /// The score in tenths: 10 to 50.
    pub const fn tenths(self) -> u8 {
        self.tenths
    }

    /// The mean, rounded half up to tenths, without floating point; `None` for no scores.
    pub fn mean(scores: &[Self]) -> Option<Self> {
        let count = u32::try_from(scores.len()).ok().filter(|count| *count > 0)?;
        let sum: u32 = scores.iter().map(|score| u32::from(score.tenths)).sum();
        let tenths = (2 * sum + count) / (2 * count);
        u8::try_from(tenths).ok().map(|tenths| Self { tenths })
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{}", self.tenths / 10, self.tenths % 10)
    }
}

/// How sure the scorer is, between 0.00 and 1.00 in hundredths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Confidence {
    hundredths: u8,
}

impl Confidence {
    /// The nearest confidence: rounded half up to hundredths, clamped to 0 to 1. NaN becomes 0.
    pub fn nearest(value: f64) -> Self {
        Self { hundredths: (value * 100.0 + 0.5).floor().clamp(0.0, 100.0) as u8 }
    }

    /// The confidence of `hundredths` hundredths; `None` outside of 0 to 100.
    pub fn from_hundredths(hundredths: i64) -> Option<Self> {
        let hundredths = u8::try_from(hundredths).ok().filter(|hundredths| *hundredths <= 100)?;
        Some(Self { hundredths })
    }

    /// The confidence in hundredths: 0 to 100.
    pub const fn hundredths(self) -> u8 {
        self.hundredths
    }
}

impl std::fmt::Display for Confidence {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{:02}", self.hundredths / 100, self.hundredths % 100)
    }
}

/// The number that a type in fixed steps is written and read as.
macro_rules! written_as_number {
    ($type:ident, $steps:ident: $steps_per_unit:literal, $range:expr, $refusal:literal) => {
        impl $type {
            /// The value as a number.
            pub fn value(self) -> f64 {
                f64::from(self.$steps) / $steps_per_unit
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_f64(self.value())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = f64::deserialize(deserializer)?;
                if $range.contains(&value) {
                    Ok(Self::nearest(value))
                } else {
                    Err(serde::de::Error::custom($refusal))
                }
            }
        }
    };
}

written_as_number!(Score, tenths: 10.0, (1.0..=5.0), "a score lies between 1.0 and 5.0");
written_as_number!(Confidence, hundredths: 100.0, (0.0..=1.0), "a confidence lies between 0 and 1");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn score_is_clamped_and_rounded_to_tenths() {
        let cases =
            [(-3.0, "1.0"), (f64::NAN, "1.0"), (3.13, "3.1"), (3.25, "3.3"), (4.96, "5.0"), (9.0, "5.0")];
        for (value, written) in cases {
            assert_eq!(Score::nearest(value).to_string(), written, "{value}");
        }
    }

    #[test]
    fn mean_is_rounded_half_up() {
        let scores = |values: &[f64]| values.iter().map(|value| Score::nearest(*value)).collect::<Vec<_>>();
        assert_eq!(Score::mean(&scores(&[3.5, 3.6])).map(|mean| mean.to_string()), Some("3.6".to_owned()));
        assert_eq!(
            Score::mean(&scores(&[3.0, 3.0, 3.1])).map(|mean| mean.to_string()),
            Some("3.0".to_owned())
        );
        assert_eq!(Score::mean(&[]), None);
    }

    #[test]
    fn score_and_confidence_serialize_as_short_decimals() {
        assert_eq!(serde_json::to_string(&Score::nearest(4.0)).ok().as_deref(), Some("4.0"));
        assert_eq!(serde_json::to_string(&Confidence::nearest(0.82)).ok().as_deref(), Some("0.82"));
    }
}
