//! Evaluation time: per conversation of a corpus, and for adversarial texts.
//!
//! `make bench-scoring`. First a table of median, p99 and maximum, then divan's figures for whole corpora.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

mod support;

use std::hint::black_box;
use std::io::Write;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use assay_contracts::conversation::Conversation;
use assay_scoring::Scorer;
use divan::Bencher;

use self::support::{Corpus, SHAPES, Shape};

/// Runs per conversation: other processes disturb single runs.
const RUNS: usize = 3;
/// The latency goal applies to conversations of this many messages.
const GOAL_MESSAGES: usize = 9;

static SCORER: LazyLock<Scorer> =
    LazyLock::new(|| Scorer::builtin().expect("the model ships with the crate"));
static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::load);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // With a filter, and in `cargo test --benches`, only divan runs.
    if arguments == ["--bench"] {
        print_summary().expect("standard output can be written");
    }
    divan::main();
}

/// All conversations of the corpus, one after the other.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn corpus(bencher: Bencher<'_, '_>) {
    let (scorer, corpus) = (&*SCORER, &*CORPUS);
    bencher
        .counter(divan::counter::ItemsCount::new(corpus.conversations.len()))
        .bench(|| evaluate_all(scorer, &corpus.conversations));
}

/// One conversation of 50 messages of 80 kB.
#[divan::bench(args = SHAPES, sample_count = 10, sample_size = 1)]
fn long_messages(bencher: Bencher<'_, '_>, shape: &Shape) {
    let conversation = shape.conversation();
    bencher.counter(divan::counter::BytesCount::new(shape.bytes())).bench(|| SCORER.evaluate(&conversation));
}

fn evaluate_all(scorer: &Scorer, conversations: &[Conversation]) {
    for conversation in conversations {
        black_box(scorer.evaluate(conversation));
    }
}

fn print_summary() -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    let corpus = &*CORPUS;
    let has_goal_length = |conversation: &&Conversation| conversation.messages.len() == GOAL_MESSAGES;
    let every: Vec<&Conversation> = corpus.conversations.iter().collect();
    let of_goal_length: Vec<&Conversation> = every.iter().copied().filter(has_goal_length).collect();
    for (name, conversations) in [(corpus.name, every), ("those of 9 messages", of_goal_length)] {
        print_times(&mut output, name, &conversations)?;
    }
    writeln!(output, "50 messages of 80 kB, fastest of {RUNS} runs:")?;
    for shape in SHAPES {
        writeln!(output, "  {:<22} {:?}", shape.name, times(&shape.conversation())[0])?;
    }
    Ok(())
}

fn print_times(output: &mut impl Write, name: &str, conversations: &[&Conversation]) -> std::io::Result<()> {
    let mut medians: Vec<Duration> =
        conversations.iter().map(|conversation| times(conversation)[RUNS / 2]).collect();
    medians.sort_unstable();
    let at = |share: f64| medians.get((medians.len().saturating_sub(1) as f64 * share) as usize).copied();
    let mean = medians.iter().sum::<Duration>() / medians.len().max(1) as u32;
    writeln!(output, "{name}: {} conversations", medians.len())?;
    let [median, p95, p99, maximum] = [0.5, 0.95, 0.99, 1.0].map(|share| at(share).unwrap_or_default());
    writeln!(output, "  median {median:?}, p95 {p95:?}, p99 {p99:?}, maximum {maximum:?}, mean {mean:?}")
}

/// Durations of [`RUNS`] runs, the fastest first.
fn times(conversation: &Conversation) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            black_box(SCORER.evaluate(black_box(conversation)));
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}
