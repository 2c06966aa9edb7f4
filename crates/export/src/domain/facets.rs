//! The enumerated fields of an evaluation, packed into two integers: they take few bytes in rows and columns, and both databases
//! compare them with shifts and masks. A stored code is the position of the value in its enumeration, from 1; 0: no value. New
//! values are only ever appended to an enumeration.

use assay_contracts::evaluation::{Evaluation, Named};
use assay_contracts::evaluations::ResultStatus;

/// A field of [`Facets::codes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeField {
    pub shift: u32,
    pub bits: u32,
    /// Number of the field in [`super::terms`].
    pub number: i32,
}

/// A field of [`Facets::sets`]: one bit for each value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetField {
    pub shift: u32,
    pub bits: u32,
    /// Number of the field in [`super::terms`].
    pub number: i32,
}

pub const STATUS: CodeField = CodeField { shift: 0, bits: 2, number: 1 };
/// Its code is 0 only if the evaluation failed.
pub const INVOLVEMENT: CodeField = CodeField { shift: 2, bits: 3, number: 2 };
pub const RESOLUTION: CodeField = CodeField { shift: 5, bits: 3, number: 3 };
pub const RESOLVED_BY: CodeField = CodeField { shift: 8, bits: 4, number: 4 };
pub const BASIS: CodeField = CodeField { shift: 12, bits: 4, number: 5 };
pub const CHARGE: CodeField = CodeField { shift: 16, bits: 3, number: 6 };
pub const HANDOFF: CodeField = CodeField { shift: 19, bits: 4, number: 7 };
pub const BAND: CodeField = CodeField { shift: 23, bits: 4, number: 8 };
pub const SCORER: CodeField = CodeField { shift: 27, bits: 4, number: 9 };

/// Every field of codes.
pub const CODE_FIELDS: [CodeField; 9] =
    [STATUS, INVOLVEMENT, RESOLUTION, RESOLVED_BY, BASIS, CHARGE, HANDOFF, BAND, SCORER];

pub const AI_TOOLS: SetField = SetField { shift: 0, bits: 24, number: 10 };
pub const CHARGE_REASONS: SetField = SetField { shift: 24, bits: 20, number: 11 };
pub const FLAGS: SetField = SetField { shift: 44, bits: 19, number: 12 };

/// Every field of sets.
pub const SET_FIELDS: [SetField; 3] = [AI_TOOLS, CHARGE_REASONS, FLAGS];

/// The packed fields of one evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facets {
    /// 31 bits.
    pub codes: u32,
    /// 63 bits.
    pub sets: u64,
}

impl Facets {
    pub fn of(status: ResultStatus, evaluation: Option<&Evaluation>) -> Self {
        let mut facets = Self::default();
        facets.put(STATUS, status);
        let Some(evaluation) = evaluation else { return facets };
        facets.put(INVOLVEMENT, evaluation.ai_involvement);
        facets.put(RESOLUTION, evaluation.resolution.status);
        facets.put(RESOLVED_BY, evaluation.resolution.resolved_by);
        facets.put(BASIS, evaluation.resolution.basis);
        facets.put(CHARGE, evaluation.charge.assessment);
        facets.put(HANDOFF, evaluation.handoff.state);
        facets.put(SCORER, evaluation.scorer.kind);
        if let Some(axis) = &evaluation.axis {
            facets.put(BAND, axis.band);
        }
        facets.add(AI_TOOLS, evaluation.ai_tools.iter().filter_map(|used| used.ai_tool));
        facets.add(CHARGE_REASONS, evaluation.charge.reasons.iter().copied());
        facets.add(FLAGS, evaluation.flags.iter().copied());
        facets
    }

    /// From the stored numbers, which are never negative.
    pub fn from_stored(codes: i32, sets: i64) -> Self {
        Self { codes: codes.unsigned_abs(), sets: sets.unsigned_abs() }
    }

    /// The value of a field; `None` without a value, or with one of a newer release.
    pub fn value<T: Named>(self, field: CodeField) -> Option<T> {
        value_of(self.code(field))
    }

    /// Whether the evaluation succeeded. One that failed has no sets, which differs from empty ones.
    pub const fn is_evaluated(self) -> bool {
        self.code(INVOLVEMENT) != 0
    }

    pub const fn code(self, field: CodeField) -> u32 {
        (self.codes >> field.shift) & ((1 << field.bits) - 1)
    }

    pub const fn set(self, field: SetField) -> u64 {
        (self.sets >> field.shift) & ((1 << field.bits) - 1)
    }

    /// The values of a field, in the order of their enumeration.
    pub fn values<T: Named>(self, field: SetField) -> Vec<T> {
        let set = self.set(field);
        T::ALL.iter().copied().filter(|value| set & bit_of(*value) != 0).collect()
    }

    fn put<T: Named>(&mut self, field: CodeField, value: T) {
        self.codes |= code_of(value) << field.shift;
    }

    fn add<T: Named>(&mut self, field: SetField, values: impl Iterator<Item = T>) {
        for value in values {
            self.sets |= bit_of(value) << field.shift;
        }
    }
}

/// The position of a value in its enumeration, from 1.
pub fn code_of<T: Named>(value: T) -> u32 {
    let index = T::ALL.iter().position(|other| *other == value).unwrap_or_default();
    u32::try_from(index).unwrap_or_default() + 1
}

/// The value with a code.
pub fn value_of<T: Named>(code: u32) -> Option<T> {
    T::ALL.get(usize::try_from(code.checked_sub(1)?).ok()?).copied()
}

/// The bit of a value in a set.
pub fn bit_of<T: Named>(value: T) -> u64 {
    1 << (code_of(value) - 1)
}

#[cfg(test)]
mod tests {
    use assay_contracts::conversation::AiTool;
    use assay_contracts::evaluation::{
        AiInvolvement, AxisBand, ChargeAssessment, ChargeReason, Flag, HandoffState, ResolutionBasis,
        ResolutionStatus, ResolvedBy, ScorerKind,
    };

    use super::*;

    fn names<T: Named>() -> Vec<&'static str> {
        T::ALL.iter().map(|value| value.name()).collect()
    }

    #[test]
    fn stored_codes_never_change() {
        let lists = [
            (names::<ResultStatus>(), "scored not_applicable failed", STATUS.bits),
            (names::<AiInvolvement>(), "ai_only ai_assisted no_ai", INVOLVEMENT.bits),
            (names::<ResolutionStatus>(), "resolved partial not_resolved", RESOLUTION.bits),
            (names::<ResolvedBy>(), "ai human customer none unknown", RESOLVED_BY.bits),
            (
                names::<ResolutionBasis>(),
                "customer_confirmed action_completed answer_given silence_only human_resolved escalated \
                 customer_rejected no_answer",
                BASIS.bits,
            ),
            (names::<ChargeAssessment>(), "supported review disputed not_applicable", CHARGE.bits),
            (
                names::<HandoffState>(),
                "none completed requested_not_completed offered_not_taken",
                HANDOFF.bits,
            ),
            (names::<AxisBand>(), "excellent good mixed poor", BAND.bits),
            (names::<ScorerKind>(), "builtin judge fallback", SCORER.bits),
        ];
        for (list, stored, bits) in lists {
            let stored: Vec<&str> = stored.split(' ').collect();
            assert!(list.starts_with(&stored), "codes are stored: append to {stored:?}, change nothing");
            assert!(list.len() < 1 << bits, "{stored:?} does not fit its {bits} bits");
        }
        let sets = [
            (
                names::<AiTool>(),
                "custom intercom zendesk salesforce hubspot freshdesk gorgias front helpScout ada decagon",
                AI_TOOLS.bits,
            ),
            (
                names::<ChargeReason>(),
                "HUMAN_RESOLVED ESCALATED CUSTOMER_REJECTED SILENCE_ONLY NO_SUBSTANTIVE_ANSWER HUMAN_REQUEST_IGNORED \
                 REOPENED PARTIAL PLANNED_HANDOFF HUMAN_WORK_IN_NOTES",
                CHARGE_REASONS.bits,
            ),
            (
                names::<Flag>(),
                "POSSIBLE_PROMPT_INJECTION UNSUPPORTED_LANGUAGE SHORT_CONVERSATION MIXED_AUTHORS TRUNCATED_TRANSCRIPT \
                 NO_AI_MESSAGES NO_CUSTOMER_MESSAGES JUDGE_DISAGREES",
                FLAGS.bits,
            ),
        ];
        for (list, stored, bits) in sets {
            let stored: Vec<&str> = stored.split(' ').collect();
            assert!(list.starts_with(&stored), "bits are stored: append to {stored:?}, change nothing");
            assert!(list.len() <= usize::try_from(bits).unwrap(), "{stored:?} does not fit its {bits} bits");
        }
    }

    #[test]
    fn fields_do_not_overlap() {
        let mut end = 0;
        for field in CODE_FIELDS {
            assert_eq!(field.shift, end);
            end += field.bits;
        }
        assert!(end <= 31);
        end = 0;
        for field in SET_FIELDS {
            assert_eq!(field.shift, end);
            end += field.bits;
        }
        assert!(end <= 63);
    }
}
