//! The results equal those of `training/encoder_file.py` on the tiny model that `training/tiny_encoder.py` wrote.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use assay_encoder::{Kernel, Model, Workspace};
use serde::Deserialize;

const FILE: &[u8] = include_bytes!("data/tiny.assayenc");
const TOLERANCE: f32 = 1e-3;

#[derive(Deserialize)]
struct Expected {
    sha256: String,
    texts: Vec<Text>,
    long: Segmented,
}

#[derive(Deserialize)]
struct Text {
    text: String,
    #[serde(flatten)]
    encoded: Encoded,
}

#[derive(Deserialize)]
struct Segmented {
    segments: Vec<usize>,
    #[serde(flatten)]
    encoded: Encoded,
}

#[derive(Deserialize)]
struct Encoded {
    ids: Vec<u32>,
    /// The first and the last vector of the last layer.
    vectors: [Vec<f32>; 2],
}

fn expected() -> Expected {
    serde_json::from_str(include_str!("data/tiny.json")).unwrap()
}

fn assert_close(model: &Model, ids: &[u32], segments: &[usize], expected: &[Vec<f32>; 2], case: &str) {
    let width = model.header().hidden;
    let vectors = model.encode(ids, segments, &mut Workspace::default()).unwrap();
    assert_eq!(vectors.len(), ids.len() * width);
    let ends = vectors[..width].iter().chain(&vectors[vectors.len() - width..]);
    assert_eq!(expected.concat().len(), 2 * width);
    for (value, expected) in ends.zip(expected.concat()) {
        assert!((value - expected).abs() < TOLERANCE, "{case}: {value}, expected {expected}");
    }
}

#[test]
fn ids_match_reference_tokenizer() {
    let model = Model::parse(FILE).unwrap();
    for Text { text, encoded } in expected().texts {
        let mut ids = Vec::new();
        model.tokenize(&text, &mut ids);
        assert_eq!(ids, encoded.ids, "{text:?}");
    }
}

#[test]
fn vectors_match_reference_on_all_kernels() {
    for kernel in Kernel::ALL.into_iter().filter(|kernel| kernel.is_available()) {
        let model = Model::parse_for(FILE, kernel).unwrap();
        let expected = expected();
        for Text { text, encoded } in expected.texts {
            let ids = [&[model.header().bos_id], &encoded.ids[..]].concat();
            assert_close(&model, &ids, &[ids.len()], &encoded.vectors, &text);
        }
        let Segmented { segments, encoded } = expected.long;
        assert_close(&model, &encoded.ids, &segments, &encoded.vectors, "64 ids");
    }
}

#[test]
fn header_and_sha256_are_exposed() {
    let model = Model::parse_static(FILE).unwrap();
    assert_eq!(model.header().name, "tiny");
    assert_eq!(model.header().hidden, 64);
    assert_eq!(model.sha256(), expected().sha256);
    assert_eq!(model.header().metadata["made_by"], "training/tiny_encoder.py");
}

#[test]
fn only_tensors_outside_the_encoder_are_exposed() {
    let model = Model::parse(FILE).unwrap();
    assert_eq!(model.tensor_f32("head.weight").unwrap(), [0.5, -1.0, 2.0, 0.0, 1.5, 3.0]);
    assert_eq!(model.tensor_shape("head.weight").unwrap(), [2, 3]);
    assert_eq!(model.tensor_f32("embedding.position"), None);
    assert_eq!(model.tensor_f32("no.such.tensor"), None);
}

#[test]
fn static_model_encodes_like_parsed_model() {
    let ids = [0, 7, 9];
    let (read, built_in) = (Model::parse(FILE).unwrap(), Model::parse_static(FILE).unwrap());
    let encode = |model: &Model| model.encode(&ids, &[3], &mut Workspace::default()).unwrap();
    assert_eq!(encode(&read), encode(&built_in));
}
