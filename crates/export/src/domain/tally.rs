//! Counts and sums of evaluations.

use assay_contracts::evaluation::{AxisBand, ChargeAssessment};
use assay_contracts::evaluations::{BandCounts, ChargeCounts, Means, Measures, ResultStatus};

use super::day::Row;
use super::facets::{self, code_of};

/// The counts and sums behind [`Measures`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Counts are indexed by code: there are as many as the bits of the field can hold.
    statuses: [u64; 4],
    bands: [u64; 16],
    charges: [u64; 8],
    /// Tenths of the four scores, and hundredths of the confidence.
    sums: [u64; 5],
}

impl Tally {
    #[inline]
    pub fn add(&mut self, row: &Row) {
        self.statuses[row.facets.code(facets::STATUS) as usize] += 1;
        self.charges[row.facets.code(facets::CHARGE) as usize] += 1;
        if row.scores.is_scored() {
            self.bands[row.facets.code(facets::BAND) as usize] += 1;
            for (number, sum) in (0..4).zip(&mut self.sums) {
                *sum += u64::from(row.scores.tenths(number));
            }
            self.sums[4] += u64::from(row.scores.hundredths());
        }
    }

    pub fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.statuses[..], &other.statuses[..]),
            (&mut self.bands[..], &other.bands[..]),
            (&mut self.charges[..], &other.charges[..]),
            (&mut self.sums[..], &other.sums[..]),
        ];
        for (sums, others) in pairs {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
    }

    pub fn measures(&self) -> Measures {
        let status = |status: ResultStatus| self.statuses[code_of(status) as usize];
        let scored = status(ResultStatus::Scored);
        Measures {
            count: self.statuses.iter().sum(),
            scored,
            not_applicable: status(ResultStatus::NotApplicable),
            failed: status(ResultStatus::Failed),
            means: self.means(scored),
            bands: BandCounts {
                excellent: self.band(AxisBand::Excellent),
                good: self.band(AxisBand::Good),
                mixed: self.band(AxisBand::Mixed),
                poor: self.band(AxisBand::Poor),
            },
            charges: self.charges(),
        }
    }

    fn charges(&self) -> ChargeCounts {
        let charge = |assessment: ChargeAssessment| self.charges[code_of(assessment) as usize];
        ChargeCounts {
            supported: charge(ChargeAssessment::Supported),
            review: charge(ChargeAssessment::Review),
            disputed: charge(ChargeAssessment::Disputed),
            not_applicable: charge(ChargeAssessment::NotApplicable),
        }
    }

    fn band(&self, band: AxisBand) -> u64 {
        self.bands[code_of(band) as usize]
    }

    fn means(&self, scored: u64) -> Option<Means> {
        if scored == 0 {
            return None;
        }
        // Rounded half up to hundredths, without floating point until the division by 100.
        let mean = |sum: u64, hundredths_per_unit: u64| {
            ((2 * sum * hundredths_per_unit + scored) / (2 * scored)) as f64 / 100.0
        };
        let [axis, resolution_accuracy, interaction_effort, handoff_smoothness, confidence] = self.sums;
        Some(Means {
            axis: mean(axis, 10),
            resolution_accuracy: mean(resolution_accuracy, 10),
            interaction_effort: mean(interaction_effort, 10),
            handoff_smoothness: mean(handoff_smoothness, 10),
            confidence: mean(confidence, 1),
        })
    }
}
