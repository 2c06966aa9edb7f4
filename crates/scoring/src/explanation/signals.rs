//! Signals: what the messages do, each with the mean effect of such messages on the raters' scores.

use assay_contracts::evaluation::Signal;

use super::EvidenceCollector;
use crate::course::CustomerCourse;
use crate::effort::EffortFindings;
use crate::facts::hundredths;
use crate::handoff::HandoffFindings;
use crate::reader::{Act, ActEffects, Reading};
use crate::transcript::Transcript;

/// Smaller effects are not reported.
const MIN_EFFECT: f64 = 0.05;
/// Signals per dimension.
const MAX_SIGNALS: usize = 8;
/// Quotes per signal.
const MAX_QUOTES: usize = 2;

/// Effect of a repeated answer, in points. Set by hand: the corpus has no separate act for it.
const REPEATED_ANSWER_EFFECT: f64 = -0.3;

/// Effect of an act on a score, and the items that show it.
#[derive(Debug)]
struct Effect {
    code: &'static str,
    points: f64,
    items: Vec<usize>,
}

/// The signals of one score, the strongest first, equal ones by code.
pub(crate) fn signals(
    effects: &ActEffects,
    transcript: &Transcript<'_>,
    reading: &Reading,
    effort: &EffortFindings,
    collector: &mut EvidenceCollector<'_, '_>,
) -> Vec<Signal> {
    let last_of_customer = transcript.customer.last().copied().unwrap_or(0);
    let mut found: Vec<Effect> = Vec::new();
    for ((act, last), earlier) in Act::ALL.into_iter().zip(&effects.last).zip(&effects.earlier) {
        let items: Vec<usize> =
            (0..transcript.items.len()).filter(|item| reading.acts(*item).has(act)).collect();
        let last_points = if items.iter().any(|item| *item >= last_of_customer) { *last } else { 0.0 };
        let earlier_points = if items.iter().any(|item| *item < last_of_customer) { *earlier } else { 0.0 };
        let points = last_points + earlier_points;
        if points.abs() >= MIN_EFFECT {
            found.push(Effect { code: act.code(), points, items });
        }
    }
    // `MissPoint` covers repeated answers.
    if !effort.loops.is_empty() && !found.iter().any(|effect| effect.code == Act::MissPoint.code()) {
        found.push(Effect {
            code: "AGENT_REPEATED_ITSELF",
            points: REPEATED_ANSWER_EFFECT,
            items: effort.loops.clone(),
        });
    }
    found
        .sort_by(|one, other| other.points.abs().total_cmp(&one.points.abs()).then(one.code.cmp(other.code)));
    found.truncate(MAX_SIGNALS);
    let signal = |effect: Effect| {
        // The latest items are the most relevant.
        let skipped = effect.items.len().saturating_sub(MAX_QUOTES);
        let evidence =
            effect.items.into_iter().skip(skipped).filter_map(|item| collector.quote(item)).collect();
        Signal { code: effect.code.to_owned(), effect: hundredths(effect.points), evidence }
    };
    found.into_iter().map(signal).collect()
}

/// Signals of handoff smoothness.
pub(crate) fn handoff_signals(
    handoff: &HandoffFindings,
    course: &CustomerCourse,
    collector: &mut EvidenceCollector<'_, '_>,
) -> Vec<Signal> {
    let lost_points = 5.0 - handoff.score;
    if !handoff.applicable || lost_points < MIN_EFFECT {
        return Vec::new();
    }
    if handoff.flaws.is_empty() {
        let code = match (handoff.handoff.first_human_reply_at, handoff.requested_by_customer()) {
            (Some(_), _) => "HANDOFF_NOT_SMOOTH",
            (None, true) => "HUMAN_REQUEST_IGNORED",
            (None, false) => "PROMISED_HUMAN_MISSING",
        };
        let item = handoff.opening_item.or(course.decided_by);
        let evidence = item.and_then(|item| collector.quote(item)).into_iter().collect();
        return vec![Signal { code: code.to_owned(), effect: -hundredths(lost_points), evidence }];
    }
    let share = lost_points / handoff.flaws.len() as f64;
    let signal = |flaw: &crate::handoff::HandoffFlaw| Signal {
        code: flaw.code.to_owned(),
        effect: -hundredths(share),
        evidence: collector.quote(flaw.item).into_iter().collect(),
    };
    handoff.flaws.iter().map(signal).collect()
}
