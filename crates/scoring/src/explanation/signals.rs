//! What moved a score: what the messages do, each with the effect that such messages have on readers' scores.

use assay_contracts::evaluation::Signal;

use super::EvidenceBook;
use crate::course::CustomerCourse;
use crate::effort::EffortFindings;
use crate::facts::hundredths;
use crate::handoff::HandoffFindings;
use crate::reader::{Act, ActEffects, Reading};
use crate::transcript::Transcript;

/// Effects below this are noise to a reader.
const SMALLEST_EFFECT: f64 = 0.05;
/// At most so many signals a dimension.
const MOST_SIGNALS: usize = 8;
/// At most so many quotes a signal.
const MOST_QUOTES: usize = 2;

/// Points of an answer that was given before. Set by hand: the corpus has no act for it but that of missing the point.
const REPEATED_ANSWER: f64 = -0.3;

/// What an act did to a score, and the items that show it.
#[derive(Debug)]
struct Effect {
    code: &'static str,
    points: f64,
    items: Vec<usize>,
}

/// The strongest signals of one score first; equal ones by code.
pub(crate) fn signals(
    effects: &ActEffects,
    transcript: &Transcript<'_>,
    reading: &Reading,
    effort: &EffortFindings,
    book: &mut EvidenceBook<'_, '_>,
) -> Vec<Signal> {
    let last_customer = transcript.customer.last().copied().unwrap_or(0);
    let mut found: Vec<Effect> = Vec::new();
    for (at, act) in Act::ALL.into_iter().enumerate() {
        let items: Vec<usize> =
            (0..transcript.items.len()).filter(|item| reading.acts(*item).has(act)).collect();
        let (Some(last), Some(earlier)) = (effects.last.get(at), effects.earlier.get(at)) else { continue };
        let is_last = items.iter().any(|item| *item >= last_customer);
        let is_earlier = items.iter().any(|item| *item < last_customer);
        let points = if is_last { *last } else { 0.0 } + if is_earlier { *earlier } else { 0.0 };
        if points.abs() >= SMALLEST_EFFECT {
            found.push(Effect { code: act.code(), points, items });
        }
    }
    if !effort.loops.is_empty() && !found.iter().any(|effect| effect.code == Act::MissPoint.code()) {
        found.push(Effect {
            code: "AGENT_REPEATED_ITSELF",
            points: REPEATED_ANSWER,
            items: effort.loops.clone(),
        });
    }
    found
        .sort_by(|one, other| other.points.abs().total_cmp(&one.points.abs()).then(one.code.cmp(other.code)));
    found.truncate(MOST_SIGNALS);
    let signal = |effect: Effect| {
        // The latest words are the ones that count.
        let skipped = effect.items.len().saturating_sub(MOST_QUOTES);
        let evidence = effect.items.into_iter().skip(skipped).filter_map(|item| book.quote(item)).collect();
        Signal { code: effect.code.to_owned(), effect: hundredths(effect.points), evidence }
    };
    found.into_iter().map(signal).collect()
}

/// What made the handoff rough.
pub(crate) fn handoff_signals(
    handoff: &HandoffFindings,
    course: &CustomerCourse,
    book: &mut EvidenceBook<'_, '_>,
) -> Vec<Signal> {
    let lost = 5.0 - handoff.score;
    if !handoff.applicable || lost < SMALLEST_EFFECT {
        return Vec::new();
    }
    if handoff.faults.is_empty() {
        let code = match (handoff.handoff.first_human_reply_at, handoff.customer_asked()) {
            (Some(_), _) => "HANDOFF_NOT_SMOOTH",
            (None, true) => "HUMAN_REQUEST_IGNORED",
            (None, false) => "PROMISED_HUMAN_MISSING",
        };
        let item = handoff.opened_by.or(course.decided_by);
        let evidence = item.and_then(|item| book.quote(item)).into_iter().collect();
        return vec![Signal { code: code.to_owned(), effect: -hundredths(lost), evidence }];
    }
    let share = lost / handoff.faults.len() as f64;
    let signal = |fault: &crate::handoff::Fault| Signal {
        code: fault.code.to_owned(),
        effect: -hundredths(share),
        evidence: book.quote(fault.item).into_iter().collect(),
    };
    handoff.faults.iter().map(signal).collect()
}
