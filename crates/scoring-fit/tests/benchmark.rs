//! Benchmarks of the scorer on a small corpus, and the validity of the project's corpus.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use assay_contracts::evaluation::Evaluation;
use assay_scoring::Scorer;
use assay_scoring_fit::{Benchmark, Corpus, CorpusPart, benchmark};
use tempfile::TempDir;

/// A corpus of three writers: an English one with two raters, a German one with one rater, one without ratings.
fn small_corpus() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for name in ["conversations", "ratings"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    write(
        "writers.tsv",
        "writer\tpart\twording\tlanguage\na\ttest\teveryday\ten\nb\ttest\ttone\tde\nc\ttrain\ttone\ten\n",
    );
    write(
        "conversations/a.txt",
        "### a-01 | shop | Order | chat\nC: Please cancel order 5521.\nA: I have cancelled order 5521.\n\
         C: Perfect, that solved it. Thank you!\n= design: Solved.\n\
         ### a-02 | shop | Refund | chat\nC: Where is my refund?\nA: Refunds take five days.\n\
         C: No, that did not help. It is still not here.\n= design: Not solved.\n\
         ### a-03 | shop | Advertisement | mail\nC: Buy our links\n= design: Nobody answered.\n\
         ### a-04 | shop | Unrated | mail\nC: Hello\nA: Hello!\n= design: Nobody rated it.\n",
    );
    write(
        "ratings/a.r1.txt",
        "a-01 | 5 | 5 | 5 | resolved | ai | supported | confirmed\n  1 ask; 2 act; 3 confirm,thank\n\
         a-02 | 1.5 | 3 | 5 | not_resolved | none | disputed | rejected\na-03 | - | - | - | - | - | na | spam\n",
    );
    write(
        "ratings/a.r2.txt",
        "a-01 | 5 | 4.5 | 5 | resolved | ai | supported | so they say\n\
         a-02 | 2 | 3 | 4 | partial | none | disputed | an answer\na-03 | - | - | - | not_resolved | none | na | spam\n",
    );
    write(
        "conversations/b.txt",
        "### b-01 | Bank | Karte | chat\nC: Meine Karte ist gesperrt.\nA: Ich habe sie entsperrt.\n\
         C: Danke, sie geht wieder!\n= design: Geloest.\n",
    );
    write("ratings/b.r1.txt", "b-01 | 5 | 5 | 5 | resolved | ai | supported | bestaetigt\n");
    write("conversations/c.txt", "### c-01 | a | b | c\nC: x\n= design: y\n");
    folder
}

fn measure(folder: &TempDir) -> Benchmark {
    let corpus = Corpus::read(folder.path(), CorpusPart::Test).unwrap();
    let scorer = Scorer::builtin().unwrap();
    let evaluations: Vec<Evaluation> =
        corpus.conversations().map(|conversation| scorer.evaluate(conversation)).collect();
    benchmark(&corpus, &evaluations)
}

#[test]
fn sets_follow_wording_and_language() {
    let folder = small_corpus();
    let found = measure(&folder);
    let sets: Vec<(&str, usize)> =
        found.sets.iter().map(|set| (set.name.as_str(), set.conversations)).collect();
    assert_eq!(sets, [("everyday", 3), ("languages", 1), ("all", 4)]);
    assert_eq!(found.languages.iter().map(|set| set.name.as_str()).collect::<Vec<_>>(), ["de"]);
    assert_eq!((found.conversations, found.without_scores), (4, 1));
}

#[test]
fn agreement_ignores_unrated_conversations() {
    let folder = small_corpus();
    let found = measure(&folder);
    let everyday = &found.sets[0];
    let (status, charge) = (everyday.scorer.status.unwrap(), everyday.scorer.charge.unwrap());
    // The raters of a-02 disagree on the status: on a tie the first in order counts.
    assert_eq!(status.conversations, 3);
    assert!((status.value - 2.0 / 3.0).abs() < 1e-9, "{status:?}");
    assert_eq!((charge.conversations, charge.value), (3, 1.0));
    assert_eq!(everyday.scorer.resolution_accuracy, None, "two pairs have no rank correlation");
    let raters = everyday.raters.unwrap();
    assert_eq!(raters.status.unwrap().conversations, 2, "the first rater gives a-03 no status");
    assert!((raters.status.unwrap().value - 0.5).abs() < 1e-9);
    assert_eq!(found.sets[1].raters, None);
    let bands: usize = found.reliability.iter().map(|band| band.conversations).sum();
    assert_eq!((found.reliability.len(), bands), (5, 4));
}

#[test]
fn report_names_every_set_and_is_deterministic() {
    let folder = small_corpus();
    let found = measure(&folder);
    assert_eq!(found, measure(&folder));
    let text = found.to_string();
    assert!(text.starts_with("test: 4 rated conversations, 1 of them without scores; scorer "), "{text}");
    for name in ["everyday ", "languages ", "language de ", "  raters among themselves ", "0.8-1.0 "] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}: {text}");
    }
}

#[test]
fn incomplete_corpus_is_refused_with_file() {
    let folder = small_corpus();
    let assert_refused = |part: CorpusPart, reason: &str| {
        let refused = Corpus::read(folder.path(), part).unwrap_err().to_string();
        assert!(refused.contains(reason), "{reason}: {refused}");
    };
    assert_refused(CorpusPart::Dev, "no rated conversations in the part `dev`");
    assert_refused(CorpusPart::Train, "no rated conversations in the part `train`");
    let unknown_writer = folder.path().join("ratings/z.r1.txt");
    fs::write(&unknown_writer, "").unwrap();
    assert_refused(CorpusPart::Test, "z.r1.txt, line 1: it must be called");
    fs::remove_file(unknown_writer).unwrap();
    let writers = folder.path().join("writers.tsv");
    fs::write(&writers, "writer\tpart\twording\tlanguage\na\ttests\ttone\ten\n").unwrap();
    assert_refused(CorpusPart::Test, "writers.tsv, line 2: the part is `tests`");
    fs::remove_file(writers).unwrap();
    assert_refused(CorpusPart::Test, "cannot read");
}

#[test]
fn project_corpus_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    for part in CorpusPart::ALL {
        let corpus = Corpus::read(&folder, part).unwrap();
        assert!(corpus.conversations().count() > 100, "{part:?}");
    }
}
