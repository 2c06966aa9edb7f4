//! All kernels give the same bytes.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use assay_encoder::{Kernel, Model, Workspace};

use self::support::{Random, Sizes, Writer};

const MODELS: [Sizes; 5] = [
    Sizes { hidden: 64, heads: 2, feed_forward: 128, layers: 2, vocabulary: 300, positions: 512 },
    Sizes { hidden: 48, heads: 3, feed_forward: 80, layers: 3, vocabulary: 50, positions: 512 },
    Sizes { hidden: 96, heads: 2, feed_forward: 16, layers: 1, vocabulary: 700, positions: 512 },
    Sizes { hidden: 16, heads: 1, feed_forward: 336, layers: 4, vocabulary: 20, positions: 512 },
    Sizes { hidden: 384, heads: 12, feed_forward: 1536, layers: 2, vocabulary: 500, positions: 512 },
];

fn bits(vectors: &[f32]) -> Vec<u32> {
    vectors.iter().map(|value| value.to_bits()).collect()
}

/// Ends of up to five segments.
fn segment_ends(random: &mut Random, length: usize) -> Vec<usize> {
    let mut ends: Vec<usize> =
        (0..random.below(5)).map(|_| 1 + random.below(length)).chain([length]).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

#[test]
fn all_kernels_give_the_same_bytes() {
    for (seed, sizes) in (1..).zip(MODELS) {
        let file = Writer::random(sizes, seed, &[]).bytes();
        let kernels: Vec<Kernel> = Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()).collect();
        let models: Vec<Model> =
            kernels.iter().map(|&kernel| Model::parse_for(&file, kernel).unwrap()).collect();
        let mut workspaces: Vec<Workspace> = models.iter().map(|_| Workspace::default()).collect();
        let mut random = Random(seed);
        // The smallest model with every length; the others with lengths that fill the blocks of the kernels and
        // lengths that do not, and a few long ones.
        let lengths = match sizes.hidden {
            16 => 1..=512,
            384 => 5..=7,
            _ => 1..=70,
        };
        let lengths = lengths.chain([127, 256, 301, 511, 512]);
        for length in lengths {
            let ids: Vec<u32> = (0..length).map(|_| random.below(sizes.vocabulary) as u32).collect();
            let segments = segment_ends(&mut random, length);
            let mut results = models
                .iter()
                .zip(&mut workspaces)
                .map(|(model, workspace)| bits(&model.encode(&ids, &segments, workspace).unwrap()));
            let first = results.next().unwrap();
            for (result, kernel) in results.zip(&kernels[1..]) {
                assert!(result == first, "{kernel:?}, {length} ids, {sizes:?}");
            }
            assert!(first.iter().all(|&bits| f32::from_bits(bits).is_finite()));
        }
    }
}

#[test]
fn later_segments_do_not_change_earlier_vectors() {
    let model = Model::parse(&Writer::random(MODELS[1], 9, &[]).bytes()).unwrap();
    let width = model.header().hidden;
    let mut workspace = Workspace::default();
    let ids: Vec<u32> = (0..120).map(|id| id % 50).collect();
    let ends = [7, 40, 41, 90, 120];
    let all = model.encode(&ids, &ends, &mut workspace).unwrap();
    for (count, end) in (1..).zip(ends) {
        let some = model.encode(&ids[..end], &ends[..count], &mut workspace).unwrap();
        assert_eq!(bits(&some), bits(&all[..end * width]));
    }
    let unsegmented = model.encode(&ids, &[120], &mut workspace).unwrap();
    assert_ne!(bits(&unsegmented[..width]), bits(&all[..width]));
}

#[test]
fn reused_workspace_does_not_change_results() {
    let model = Model::parse(&Writer::random(MODELS[1], 4, &[]).bytes()).unwrap();
    let other = Model::parse(&Writer::random(MODELS[0], 5, &[]).bytes()).unwrap();
    let mut used = Workspace::default();
    other.encode(&[1; 300], &[300], &mut used).unwrap();
    let ids = [0, 3, 8, 49];
    let fresh = model.encode(&ids, &[4], &mut Workspace::default()).unwrap();
    let reused = model.encode(&ids, &[4], &mut used).unwrap();
    assert_eq!(bits(&fresh), bits(&reused));
}

#[test]
fn unavailable_kernel_is_refused() {
    let file = Writer::random(MODELS[1], 4, &[]).bytes();
    for kernel in Kernel::ALL {
        let model = Model::parse_for(&file, kernel);
        assert_eq!(model.is_ok(), kernel.is_available());
        if let Ok(model) = model {
            assert_eq!(model.kernel(), kernel);
        }
    }
    assert!(Kernel::detect().is_available());
}
