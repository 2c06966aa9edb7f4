//! A question, the AI's only answer, and silence: a right answer may have solved the issue, one beside the point has not.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it measured"
)]

mod support;

use assay_contracts::evaluation::ResolutionStatus;

const CASES: &str = include_str!("samples/plain_answers.tsv");
/// Minimum share of right answers whose status is not `not_resolved`, and of wrong answers whose status is: measured, rounded
/// down.
const MIN_SHARES: [(&str, f64); 2] = [("right", 0.89), ("wrong", 0.85)];

#[test]
fn plain_answers_are_told_from_answers_beside_the_point() {
    let scorer = support::scorer();
    for (kind, minimum) in MIN_SHARES {
        let (mut correct, mut cases) = (0, 0);
        for line in CASES.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            let [language, case_kind, question, answer] = fields[..] else { panic!("four fields: {line}") };
            if case_kind != kind {
                continue;
            }
            let conversation = support::conversation(&[("contact", question), ("ai", answer)]);
            let status = scorer.evaluate(&conversation).resolution.status;
            let is_correct = (status == ResolutionStatus::NotResolved) == (kind == "wrong");
            if !is_correct {
                eprintln!("{kind}, {language}: {status:?}: {question} / {answer}");
            }
            correct += usize::from(is_correct);
            cases += 1;
        }
        let share = f64::from(u32::try_from(correct).unwrap()) / f64::from(u32::try_from(cases).unwrap());
        eprintln!("{kind} answers: {share:.3} of {cases}, minimum {minimum}");
        assert!(cases >= 14 && share >= minimum, "{kind}: {share:.3} of {cases}");
    }
}
