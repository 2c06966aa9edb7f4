//! What the models see: numbers with a **fixed sign**.
//!
//! A feature either raises or lowers a score, whatever was fitted; that is why a complaint can never turn into
//! praise by a freak of the data. All values are counts (as logarithms) or shares, never negative.

mod answers;
mod customer;
mod outcome;
mod structure;

use std::fmt;

use crate::customer::CustomerCourse;
use crate::effort::EffortFindings;
use crate::transcript::{Item, Transcript};

/// The direction in which a feature may move a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    Raises,
    Lowers,
}

impl Sign {
    /// +1 or −1.
    pub(crate) const fn factor(self) -> f64 {
        match self {
            Self::Raises => 1.0,
            Self::Lowers => -1.0,
        }
    }
}

/// Name of a feature, in parts, so that none is built while scoring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeatureName {
    subject: &'static str,
    view: &'static str,
}

impl fmt::Display for FeatureName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.subject, self.view)
    }
}

/// One number for the model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Feature {
    /// `subject.view`, as in the weights file.
    pub name: FeatureName,
    /// The direction in which it may move a score.
    pub sign: Sign,
    /// Code of the signal it is reported under.
    pub code: &'static str,
    /// Not negative, finite.
    pub value: f64,
}

/// Everything that features are made from.
pub(crate) struct Observations<'t, 'a> {
    pub transcript: &'t Transcript<'a>,
    pub course: &'t CustomerCourse,
    pub effort: &'t EffortFindings,
}

/// All features, always the same ones in the same order.
pub(crate) fn extract(observations: &Observations<'_, '_>) -> Vec<Feature> {
    let mut features = FeatureList(Vec::with_capacity(96));
    customer::add(observations, &mut features);
    answers::add(observations, &mut features);
    outcome::add(observations, &mut features);
    structure::add(observations, &mut features);
    features.0
}

/// Features in the making.
struct FeatureList(Vec<Feature>);

impl FeatureList {
    fn raises(&mut self, subject: &'static str, view: &'static str, code: &'static str, value: f64) {
        self.0.push(Feature { name: FeatureName { subject, view }, sign: Sign::Raises, code, value });
    }

    fn lowers(&mut self, subject: &'static str, view: &'static str, code: &'static str, value: f64) {
        self.0.push(Feature { name: FeatureName { subject, view }, sign: Sign::Lowers, code, value });
    }
}

/// Natural logarithm of one more than a count: the first time says more than the fifth.
fn dampened(count: usize) -> f64 {
    (count as f64).ln_1p()
}

/// How many of `marks` are set, as a share; 0 for none at all.
fn share(marks: &[bool]) -> f64 {
    if marks.is_empty() { 0.0 } else { count(marks) as f64 / marks.len() as f64 }
}

/// The highest share among the prefixes of at least `from` marks: a later mark can raise it but not thin it out.
fn worst(view: impl Fn(&[bool]) -> f64, marks: &[bool], from: usize) -> f64 {
    // The rule, and then no share is more than none.
    if !marks.contains(&true) {
        return 0.0;
    }
    prefixes(marks, from).map(view).fold(0.0, f64::max)
}

/// The lowest value among the prefixes of at least `from` marks: a later mark can lower it but not raise it.
fn least(view: impl Fn(&[bool]) -> f64, marks: &[bool], from: usize) -> f64 {
    let lowest = prefixes(marks, from).map(view).fold(f64::INFINITY, f64::min);
    if lowest.is_finite() { lowest } else { 0.0 }
}

fn prefixes(marks: &[bool], from: usize) -> impl Iterator<Item = &[bool]> {
    (from.min(marks.len())..=marks.len()).filter_map(|length| marks.get(..length))
}

fn count(marks: &[bool]) -> usize {
    marks.iter().filter(|mark| **mark).count()
}

fn second_half(marks: &[bool]) -> &[bool] {
    marks.get(marks.len() / 2..).unwrap_or_default()
}

fn last(marks: &[bool]) -> f64 {
    f64::from(u8::from(marks.last().copied().unwrap_or(false)))
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The customer's items since they last let things rest; the last one where they still do.
fn unsettled_items<'t, 'a>(observations: &Observations<'t, 'a>) -> Vec<&'t Item<'a>> {
    let transcript = observations.transcript;
    let from = (observations.course.settled_turn + 1).min(transcript.turn_count().saturating_sub(1));
    let numbered = transcript.customer.iter().zip(&transcript.turns);
    numbered.filter(|(_, turn)| **turn >= from).filter_map(|(index, _)| transcript.item(*index)).collect()
}
