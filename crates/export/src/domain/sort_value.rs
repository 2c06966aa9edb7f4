//! The values that lists are ordered by.

use assay_contracts::evaluation::ChargeAssessment;
use assay_contracts::evaluations::SortKey;

use super::day::PackedScores;
use super::facets::{self, Facets};

/// The value of a sort key, below 128: a score in tenths, the confidence in hundredths or the code of a charge. `None` without
/// a value, for a charge that is not applicable, and for the date.
pub fn sort_value(key: SortKey, facets: Facets, scores: PackedScores) -> Option<u8> {
    let score = |value: u32| scores.is_scored().then_some(value);
    let value = match key {
        SortKey::StartedAt => None,
        SortKey::Axis => score(scores.tenths(0)),
        SortKey::ResolutionAccuracy => score(scores.tenths(1)),
        SortKey::InteractionEffort => score(scores.tenths(2)),
        SortKey::HandoffSmoothness => score(scores.tenths(3)),
        SortKey::Confidence => score(scores.hundredths()),
        SortKey::Charge => Some(facets.code(facets::CHARGE))
            .filter(|code| *code > 0 && *code != facets::code_of(ChargeAssessment::NotApplicable)),
    };
    value.and_then(|value| u8::try_from(value).ok())
}
