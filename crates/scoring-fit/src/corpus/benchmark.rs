//! Agreement of evaluations with the raters of a corpus.

use assay_contracts::evaluation::{ChargeAssessment, Evaluation, ResolutionStatus, ResolvedBy};
use serde::Serialize;

use super::ratings::Rating;
use super::{Corpus, CorpusPart, RatedConversation, Wording};
use crate::metrics::{confidence_interval, spearman};
use crate::scored::{Dimension, scores_of};

/// Two raters are compared if at least one in this many conversations was rated by both.
const COMMON_FRACTION: usize = 4;
/// Minimum pairs for a rank correlation.
const MIN_PAIRS: usize = 3;
/// Number of bands of confidence.
const BANDS: usize = 5;
/// Language of the writers that are not in the set `languages`.
const ENGLISH: &str = "en";

/// Agreement of a scorer with the raters, by sets of conversations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Benchmark {
    /// Part of the corpus.
    pub part: CorpusPart,
    /// Version of the scorer.
    pub scorer_version: String,
    /// SHA-256 of the model and, where there are any, of the weights.
    pub weights_sha256: String,
    /// Rated conversations.
    pub conversations: usize,
    /// Conversations without scores, because no AI agent or no customer wrote; they count for verdicts only.
    pub without_scores: usize,
    /// English conversations by their wording, conversations in other languages, all conversations.
    pub sets: Vec<ConversationSet>,
    /// Conversations that are not in English, by the language of the writer; `mix` for writers of several languages.
    pub languages: Vec<ConversationSet>,
    /// Five bands of the stated confidence of the resolution, lowest first.
    pub reliability: Vec<Band>,
}

/// Figures of a set of conversations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConversationSet {
    /// Name of the set.
    pub name: String,
    /// Rated conversations.
    pub conversations: usize,
    /// Agreement of the scorer with the raters.
    pub scorer: Figures,
    /// Agreement among raters: means over pairs. `None` for a single rater.
    pub raters: Option<Figures>,
}

/// Spearman's rho of the three scores, and the share of equal verdicts. `None` if undefined.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct Figures {
    /// Rho with the mean of the raters.
    pub resolution_accuracy: Option<Estimate>,
    /// Rho with the mean of the raters.
    pub interaction_effort: Option<Estimate>,
    /// Rho with the mean of the raters.
    pub handoff_smoothness: Option<Estimate>,
    /// Share with the status that most raters give.
    pub status: Option<Estimate>,
    /// Share with the solver that most raters give.
    pub solver: Option<Estimate>,
    /// Share with the charge that most raters give.
    pub charge: Option<Estimate>,
}

/// A figure with its 95 % interval, by a bootstrap of 1,000 resamples of the conversations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of conversations.
    pub conversations: usize,
    /// The figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Reliability of resolutions in a band of confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Band {
    /// Lowest confidence of the band.
    pub from: f64,
    /// End of the band, exclusive; the last band includes 1.
    pub to: f64,
    /// Conversations.
    pub conversations: usize,
    /// Mean confidence; `None` without conversations.
    pub stated: Option<f64>,
    /// Share whose status is that of most raters; `None` without conversations.
    pub right: Option<f64>,
}

/// A rated conversation and its evaluation.
#[derive(Clone, Copy)]
struct Case<'c> {
    rated: &'c RatedConversation,
    evaluation: &'c Evaluation,
}

/// Measures evaluations of all conversations of a corpus, in its order.
pub fn benchmark(corpus: &Corpus, evaluations: &[Evaluation]) -> Benchmark {
    let cases: Vec<Case<'_>> =
        corpus.rated.iter().zip(evaluations).map(|(rated, evaluation)| Case { rated, evaluation }).collect();
    let scorer = evaluations.first().map(|evaluation| &evaluation.scorer);
    Benchmark {
        part: corpus.part,
        scorer_version: scorer.map_or_else(String::new, |scorer| scorer.version.clone()),
        weights_sha256: scorer.map_or_else(String::new, |scorer| scorer.weights_sha256.clone()),
        conversations: cases.len(),
        without_scores: cases.iter().filter(|case| case.evaluation.axis.is_none()).count(),
        sets: sets(&cases),
        languages: languages(&cases),
        reliability: reliability(&cases),
    }
}

fn sets(cases: &[Case<'_>]) -> Vec<ConversationSet> {
    let is_english = |case: &Case<'_>| case.rated.language == ENGLISH;
    let worded = |wording: Wording| move |case: &Case<'_>| is_english(case) && case.rated.wording == wording;
    [
        set("everyday", cases, worded(Wording::Everyday)),
        set("unusual", cases, worded(Wording::Unusual)),
        set("languages", cases, |case| !is_english(case)),
        set("tone", cases, worded(Wording::Tone)),
        set("all", cases, |_| true),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn languages(cases: &[Case<'_>]) -> Vec<ConversationSet> {
    let mut names: Vec<&str> = cases.iter().map(|case| case.rated.language.as_str()).collect();
    names.retain(|name| *name != ENGLISH);
    names.sort_unstable();
    names.dedup();
    names.into_iter().filter_map(|name| set(name, cases, |case| case.rated.language == name)).collect()
}

/// `None` when no case is in the set.
fn set(name: &str, cases: &[Case<'_>], is_in: impl Fn(&Case<'_>) -> bool) -> Option<ConversationSet> {
    let chosen: Vec<Case<'_>> = cases.iter().copied().filter(|case| is_in(case)).collect();
    (!chosen.is_empty()).then(|| ConversationSet {
        name: name.to_owned(),
        conversations: chosen.len(),
        scorer: scorer_agreement(&chosen),
        raters: rater_agreement(&chosen),
    })
}

fn scorer_agreement(cases: &[Case<'_>]) -> Figures {
    let [resolution_accuracy, interaction_effort, handoff_smoothness] = Dimension::ALL.map(|dimension| {
        rho(cases.iter().filter_map(|case| {
            let found = scores_of(&case.evaluation.axis.as_ref()?.dimensions);
            Some((case.mean(dimension)?, dimension.of(&found)))
        }))
    });
    let share_right = |right: fn(&Case<'_>) -> Option<bool>| share(cases.iter().filter_map(right));
    Figures {
        resolution_accuracy,
        interaction_effort,
        handoff_smoothness,
        status: share_right(|case| case.has_right_status()),
        solver: share_right(|case| {
            let wanted = majority(case.ratings().map(|rating| rating.solver), ResolvedBy::ALL)?;
            Some(case.evaluation.resolution.resolved_by == wanted)
        }),
        charge: share_right(|case| {
            let wanted = majority(case.ratings().map(|rating| rating.charge), ChargeAssessment::ALL)?;
            Some(case.evaluation.charge.assessment == wanted)
        }),
    }
}

/// Means over the pairs of raters who share enough conversations: one who rated only disputed conversations would bias them.
fn rater_agreement(cases: &[Case<'_>]) -> Option<Figures> {
    let raters = cases.iter().map(|case| case.rated.ratings.len()).max().unwrap_or(0);
    let mut pairs = Vec::new();
    for one in 0..raters {
        for other in one + 1..raters {
            let both = |case: &Case<'_>| Some((case.rating(one)?, case.rating(other)?));
            let rated: Vec<(Rating, Rating)> = cases.iter().filter_map(both).collect();
            if rated.len() * COMMON_FRACTION >= cases.len() {
                pairs.push(pair_agreement(&rated));
            }
        }
    }
    let mean_of = |figure: fn(&Figures) -> Option<Estimate>| mean(pairs.iter().filter_map(figure));
    (!pairs.is_empty()).then(|| Figures {
        resolution_accuracy: mean_of(|figures| figures.resolution_accuracy),
        interaction_effort: mean_of(|figures| figures.interaction_effort),
        handoff_smoothness: mean_of(|figures| figures.handoff_smoothness),
        status: mean_of(|figures| figures.status),
        solver: mean_of(|figures| figures.solver),
        charge: mean_of(|figures| figures.charge),
    })
}

/// Agreement of two raters.
fn pair_agreement(rated: &[(Rating, Rating)]) -> Figures {
    let [resolution_accuracy, interaction_effort, handoff_smoothness] = Dimension::ALL.map(|dimension| {
        let given = |rating: &Rating| dimension.of(&rating.scores);
        rho(rated.iter().filter_map(|(one, other)| given(one).zip(given(other))))
    });
    Figures {
        resolution_accuracy,
        interaction_effort,
        handoff_smoothness,
        status: share(rated.iter().filter_map(|(one, other)| Some(one.status? == other.status?))),
        solver: share(rated.iter().filter_map(|(one, other)| Some(one.solver? == other.solver?))),
        charge: share(rated.iter().filter_map(|(one, other)| Some(one.charge? == other.charge?))),
    }
}

fn reliability(cases: &[Case<'_>]) -> Vec<Band> {
    let outcomes: Vec<(f64, bool)> = cases
        .iter()
        .filter_map(|case| Some((case.evaluation.resolution.confidence.value(), case.has_right_status()?)))
        .collect();
    // The small term keeps rounding from moving a confidence on a bound to the band below.
    let band_of = |confidence: f64| ((confidence * BANDS as f64 + 1e-9) as usize).min(BANDS - 1);
    let band = |index: usize| {
        let within: Vec<(f64, bool)> =
            outcomes.iter().copied().filter(|(confidence, _)| band_of(*confidence) == index).collect();
        let count = within.len() as f64;
        let per_case = |sum: f64| (!within.is_empty()).then(|| sum / count);
        Band {
            from: index as f64 / BANDS as f64,
            to: (index + 1) as f64 / BANDS as f64,
            conversations: within.len(),
            stated: per_case(within.iter().map(|(confidence, _)| confidence).sum()),
            right: per_case(within.iter().filter(|(_, right)| *right).count() as f64),
        }
    };
    (0..BANDS).map(band).collect()
}

impl Case<'_> {
    fn ratings(&self) -> impl Iterator<Item = &Rating> {
        self.rated.ratings.iter().flatten()
    }

    fn rating(&self, rater: usize) -> Option<Rating> {
        self.rated.ratings.get(rater).copied().flatten()
    }

    /// Mean of a score over the raters.
    fn mean(&self, dimension: Dimension) -> Option<f64> {
        let given: Vec<f64> = self.ratings().filter_map(|rating| dimension.of(&rating.scores)).collect();
        (!given.is_empty()).then(|| given.iter().sum::<f64>() / given.len() as f64)
    }

    /// `None` when no rater gives a status.
    fn has_right_status(&self) -> Option<bool> {
        let wanted = majority(self.ratings().map(|rating| rating.status), ResolutionStatus::ALL)?;
        Some(self.evaluation.resolution.status == wanted)
    }
}

/// The most frequent value; on a tie the first in `order`, as in training. `None` without values.
fn majority<T: Copy + PartialEq>(given: impl Iterator<Item = Option<T>>, order: &[T]) -> Option<T> {
    let given: Vec<T> = given.flatten().collect();
    let count = |value: T| given.iter().filter(|given| **given == value).count();
    let most = order.iter().map(|value| count(*value)).max().filter(|most| *most > 0)?;
    order.iter().copied().find(|value| count(*value) == most)
}

fn rho(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Estimate> {
    let pairs: Vec<(f64, f64)> = pairs.collect();
    (pairs.len() >= MIN_PAIRS).then(|| estimate(&pairs, spearman))
}

fn share(right: impl Iterator<Item = bool>) -> Option<Estimate> {
    let right: Vec<bool> = right.collect();
    let share_right =
        |cases: &[bool]| cases.iter().filter(|right| **right).count() as f64 / cases.len() as f64;
    (!right.is_empty()).then(|| estimate(&right, share_right))
}

fn estimate<T: Copy>(cases: &[T], figure: impl Fn(&[T]) -> f64) -> Estimate {
    let value = figure(cases);
    let (low, high) = confidence_interval(cases, figure);
    Estimate { conversations: cases.len(), value, low, high }
}

/// Means of the values and of the interval ends; the largest number of conversations.
fn mean(estimates: impl Iterator<Item = Estimate>) -> Option<Estimate> {
    let estimates: Vec<Estimate> = estimates.collect();
    let count = estimates.len() as f64;
    let mean_of = |part: fn(&Estimate) -> f64| estimates.iter().map(part).sum::<f64>() / count;
    let conversations = estimates.iter().map(|estimate| estimate.conversations).max()?;
    Some(Estimate {
        conversations,
        value: mean_of(|estimate| estimate.value),
        low: mean_of(|estimate| estimate.low),
        high: mean_of(|estimate| estimate.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn majority_breaks_ties_by_order() {
        use ResolutionStatus::{NotResolved, Partial, Resolved};
        let of = |given: &[Option<ResolutionStatus>]| majority(given.iter().copied(), ResolutionStatus::ALL);
        assert_eq!(of(&[Some(Partial), Some(NotResolved), Some(NotResolved)]), Some(NotResolved));
        assert_eq!(of(&[Some(NotResolved), Some(Partial)]), Some(Partial));
        assert_eq!(of(&[None, Some(Resolved)]), Some(Resolved));
        assert_eq!(of(&[None]), None);
    }
}
