//! Evaluation time: per conversation of a corpus, and for adversarial texts.
//!
//! `make bench-scoring`: median, p95, p99 and maximum of a corpus, and the time for each kind of adversarial text.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark fails by panicking")]

mod support;

use std::hint::black_box;
use std::io::Write;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use assay_contracts::conversation::Conversation;
use assay_scoring::Scorer;

use self::support::{ADVERSARIAL_TEXTS, Corpus};

/// Runs per conversation: other processes disturb single runs.
const RUNS: usize = 3;
/// The latency goal applies to conversations of this many messages.
const GOAL_MESSAGES: usize = 9;

static SCORER: LazyLock<Scorer> =
    LazyLock::new(|| Scorer::builtin().expect("the model ships with the crate"));

fn main() -> std::io::Result<()> {
    // Not in `cargo test --benches`.
    if std::env::args().any(|argument| argument == "--bench") { print_summary() } else { Ok(()) }
}

fn print_summary() -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    let corpus = Corpus::load();
    let has_goal_length = |conversation: &&Conversation| conversation.messages.len() == GOAL_MESSAGES;
    let every: Vec<&Conversation> = corpus.conversations.iter().collect();
    let of_goal_length: Vec<&Conversation> = every.iter().copied().filter(has_goal_length).collect();
    for (name, conversations) in [(corpus.name, every), ("those of 9 messages", of_goal_length)] {
        print_times(&mut output, name, &conversations)?;
    }
    writeln!(output, "50 messages of 80 kB, fastest of {RUNS} runs:")?;
    for text in ADVERSARIAL_TEXTS {
        writeln!(output, "  {:<22} {:?}", text.name, times(&text.conversation())[0])?;
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
