//! Encoding time by kernel and number of ids, on a random model of the shipped size.
//!
//! `cargo bench -p assay-encoder`

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::sync::LazyLock;

use assay_encoder::{Kernel, Model, Workspace};
use divan::Bencher;

use self::support::{Random, Sizes, Writer};

const SIZES: Sizes =
    Sizes { hidden: 384, heads: 12, feed_forward: 1536, layers: 6, vocabulary: 8192, positions: 512 };

static FILE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let pieces: Vec<String> = (0..8000).map(|id| format!("{id:x}")).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    Writer::random(SIZES, 1, &pieces).bytes()
});

fn main() {
    divan::main();
}

#[divan::bench(args = [64, 128, 256, 384], sample_count = 30, sample_size = 1)]
fn portable(bencher: Bencher<'_, '_>, length: usize) {
    encode(bencher, Kernel::Portable, length);
}

#[divan::bench(args = [64, 128, 256, 384], sample_count = 30, sample_size = 1)]
fn avx2(bencher: Bencher<'_, '_>, length: usize) {
    encode(bencher, Kernel::Avx2, length);
}

#[divan::bench(args = [64, 128, 256, 384], sample_count = 30, sample_size = 1)]
fn avx512_vnni(bencher: Bencher<'_, '_>, length: usize) {
    encode(bencher, Kernel::Avx512Vnni, length);
}

/// Reading the file and packing its weights.
#[divan::bench(sample_count = 10, sample_size = 1)]
fn parse() -> Model {
    Model::parse(&FILE).unwrap()
}

/// Ten kilobytes of text with words that are pieces of the vocabulary and words with unknown characters.
#[divan::bench(sample_count = 30, sample_size = 1)]
fn tokenize(bencher: Bencher<'_, '_>) {
    let model = Model::parse(&FILE).unwrap();
    let text = "12ab 77 coffee-bean 0f 9e2c feed the cat. ".repeat(250);
    bencher.counter(divan::counter::BytesCount::of_str(&text)).bench_local(|| {
        let mut ids = Vec::new();
        model.tokenize(&text, &mut ids);
        ids
    });
}

/// Encodes segments of 30 ids, like messages of a conversation.
fn encode(bencher: Bencher<'_, '_>, kernel: Kernel, length: usize) {
    if !kernel.is_available() {
        return;
    }
    let model = Model::parse_for(&FILE, kernel).unwrap();
    let mut random = Random(7);
    let ids: Vec<u32> = (0..length).map(|_| random.below(SIZES.vocabulary) as u32).collect();
    let mut workspace = Workspace::default();
    let ends: Vec<usize> = (30..length).step_by(30).chain([length]).collect();
    bencher.bench_local(|| model.encode(&ids, &ends, &mut workspace).unwrap());
}
