//! What the answers' words say. They only ever lower a score, and an answer behind the customer's last message
//! never thins out what was said before it.

use super::{FeatureList, Observations, count, dampened, flag, second_half, share, worst};
use crate::answer::denies_a_fact;
use crate::lexicon::Group;

const UNFAVOURABLE: [(&str, Group, &str); 6] = [
    ("answer_apology", Group::Apology, "AGENT_APOLOGISED"),
    ("answer_refusal", Group::Refusal, "AGENT_REFUSED"),
    ("answer_policy", Group::Policy, "AGENT_CITED_POLICY"),
    ("answer_confusion", Group::Confusion, "AGENT_CONFUSED"),
    ("answer_deflection", Group::Deflection, "AGENT_PUT_OFF"),
    ("answer_ask_information", Group::AskInformation, "AGENT_ASKED_BACK"),
];

pub(super) fn add(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    let transcript = observations.transcript;
    let heard = observations.course.settled_answers;
    for (subject, group, code) in UNFAVOURABLE {
        // "They have no live music, sorry" answers a question and refuses nothing.
        let excused = matches!(group, Group::Apology | Group::Refusal);
        let marks: Vec<bool> = transcript
            .answers
            .iter()
            .map(|index| {
                transcript.item(*index).is_some_and(|item| item.has(group))
                    && !(excused && denies_a_fact(transcript, *index))
            })
            .collect();
        add_views(features, subject, code, &marks, heard);
    }
    let transfers: Vec<bool> = transcript
        .answer_items()
        .map(|item| item.has_any(&[Group::TransferPromise, Group::TransferOffer]))
        .collect();
    add_views(features, "answer_transfer", "AGENT_HANDED_OVER", &transfers, heard);
    let questions: Vec<bool> = transcript.answer_items().map(|item| item.reading.questions > 0).collect();
    features.lowers("answer_question", "share", "AGENT_ASKED_BACK", worst(share, &questions, heard));
    add_loops(observations, features);
}

fn add_views(
    features: &mut FeatureList,
    subject: &'static str,
    code: &'static str,
    marks: &[bool],
    heard: usize,
) {
    let (early, late) = marks.split_at_checked(heard).unwrap_or((marks, &[]));
    features.lowers(subject, "share", code, worst(share, marks, heard));
    features.lowers(subject, "second_half", code, worst(|marks| share(second_half(marks)), marks, heard));
    features.lowers(subject, "last", code, flag(early.last() == Some(&true) || late.contains(&true)));
    features.lowers(subject, "count", code, dampened(count(marks)));
}

fn add_loops(observations: &Observations<'_, '_>, features: &mut FeatureList) {
    // The first one has none before it.
    let closest = observations.transcript.answer_likeness.get(1..).unwrap_or_default();
    let mut sum = 0.0;
    let mean = closest.iter().enumerate().map(|(index, share)| {
        sum += share;
        sum / (index + 1) as f64
    });
    features.lowers(
        "answer_loop",
        "count",
        "AGENT_REPEATED_ITSELF",
        dampened(observations.effort.loops.len()),
    );
    features.lowers("answer_loop", "similarity", "AGENT_REPEATED_ITSELF", mean.fold(0.0, f64::max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_answer_never_thins_out_an_earlier_one() {
        let before = worst(share, &[true, false], 2);
        assert_eq!(worst(share, &[true, false, false], 2), before);
        assert!(worst(share, &[true, false, true], 2) > before);
    }
}
