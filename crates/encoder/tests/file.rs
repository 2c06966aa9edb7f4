//! Invalid model files are refused with the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use assay_encoder::{FORMAT_VERSION, Model, ModelError};
use serde_json::{Value, json};

use self::support::{Random, Sizes, Writer, seal};

const SIZES: Sizes =
    Sizes { hidden: 32, heads: 2, feed_forward: 48, layers: 2, vocabulary: 20, positions: 8 };

fn writer() -> Writer {
    Writer::random(SIZES, 3, &["", "", "▁a", "b"])
}

fn error(bytes: &[u8]) -> ModelError {
    Model::parse(bytes).err().expect("the file is faulty")
}

/// The file of a model without its checksum.
fn content(writer: &Writer) -> Vec<u8> {
    let mut bytes = writer.bytes();
    bytes.truncate(bytes.len() - 32);
    bytes
}

#[test]
fn random_model_is_parsed() {
    let model = Model::parse(&writer().bytes()).unwrap();
    assert_eq!(model.header().vocabulary, 20);
    assert_eq!(model.header().metadata, json!({"seed": 3}));
}

#[test]
fn files_without_magic_bytes_are_refused() {
    for bytes in [&b""[..], b"ASSAY", b"PK\x03\x04 something else altogether"] {
        assert_eq!(error(bytes), ModelError::NotAModel);
    }
}

#[test]
fn unknown_format_version_is_refused() {
    let mut bytes = writer().bytes();
    bytes[8] = 9;
    assert_eq!(error(&bytes), ModelError::FormatVersion { found: 9, expected: FORMAT_VERSION });
}

#[test]
fn truncation_at_any_offset_is_detected() {
    let bytes = writer().bytes();
    for length in (8..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        let error = error(&bytes[..length]);
        assert!(matches!(error, ModelError::Truncated { found, .. } if found == length), "{length}: {error}");
    }
}

#[test]
fn corruption_of_any_byte_is_detected() {
    let bytes = writer().bytes();
    let mut random = Random(11);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        let offset = 16 + random.below(bytes.len() - 16);
        damaged[offset] ^= 1 << random.below(8);
        let error = error(&damaged);
        assert!(matches!(error, ModelError::Checksum | ModelError::Truncated { .. }), "{offset}: {error}");
    }
    let longer = [&bytes[..], b"more"].concat();
    assert_eq!(error(&longer), ModelError::Checksum);
}

#[test]
fn invalid_headers_are_refused() {
    let mut without_hidden = writer();
    without_hidden.header.as_object_mut().unwrap().remove("hidden");
    let message = error(&without_hidden.bytes()).to_string();
    assert!(message.contains("hidden"), "{message}");

    let mut bytes = content(&writer());
    bytes[16] = b'[';
    assert!(matches!(error(&seal(bytes)), ModelError::Header(_)));

    let unknown_type = json!([{"name": "x", "dtype": "f64", "shape": [1], "offset": 0}]);
    let bytes = writer().bytes_with(unknown_type.as_array().unwrap().clone());
    assert!(error(&bytes).to_string().contains("f64"));
}

#[test]
fn invalid_sizes_are_refused() {
    let cases = [
        ("hidden", json!(40)),
        ("hidden", json!(0)),
        ("heads", json!(0)),
        ("heads", json!(3)),
        ("heads", json!(4)),
        ("feed_forward", json!(100)),
        ("feed_forward", json!(1 << 20)),
        ("layers", json!(0)),
        ("vocabulary", json!(0)),
        ("max_positions", json!(0)),
        ("bos_id", json!(20)),
        ("unk_id", json!(4_000_000_000_u32)),
    ];
    for (field, value) in cases {
        let mut writer = writer();
        writer.header[field] = value.clone();
        let error = error(&writer.bytes());
        assert!(matches!(error, ModelError::Size { name, .. } if name == field), "{field} {value}: {error}");
    }
}

#[test]
fn missing_tensors_are_refused() {
    for entry in writer().tensor_list() {
        let name = entry["name"].as_str().unwrap();
        let mut writer = writer();
        writer.remove(name);
        assert_eq!(error(&writer.bytes()), ModelError::MissingTensor(name.to_owned()));
    }
}

#[test]
fn tensors_of_wrong_type_or_shape_are_refused() {
    for entry in writer().tensor_list() {
        let name = entry["name"].as_str().unwrap();
        let mut changed = writer();
        changed.set(name, if entry["dtype"] == "i8" { "u8" } else { "i8" }, &[0], Vec::new());
        let wrong = error(&changed.bytes());
        assert!(matches!(wrong, ModelError::WrongType { name: ref other, .. } if other == name), "{wrong}");

        let mut changed = writer();
        let dtype = ["i8", "u8", "u32", "f32"].into_iter().find(|dtype| entry["dtype"] == *dtype).unwrap();
        changed.set(name, dtype, &[1, 1, 1], vec![0; 4]);
        let wrong = error(&changed.bytes());
        assert!(matches!(wrong, ModelError::WrongShape { name: ref other, .. } if other == name), "{wrong}");
    }
}

#[test]
fn tensor_offsets_are_checked() {
    let list = writer().tensor_list();
    let with = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut list = list.clone();
        change(&mut list);
        error(&writer().bytes_with(list))
    };
    assert_eq!(with(&|list| list[2]["offset"] = json!(65)), ModelError::Unaligned("tokenizer.scores".into()));
    let outside = with(&|list| list[2]["offset"] = json!(1_u64 << 40));
    assert!(matches!(outside, ModelError::Truncated { .. }), "{outside}");
    let huge = with(&|list| list[2]["shape"] = json!([u64::MAX, u64::MAX]));
    assert!(matches!(huge, ModelError::Truncated { .. }), "{huge}");
    let twice = with(&|list| list.push(list[0].clone()));
    assert_eq!(twice, ModelError::DuplicateTensor("tokenizer.pieces".into()));
}

#[test]
fn nan_in_tensors_is_refused() {
    for name in ["layer.1.down.scale", "other.head"] {
        let mut writer = writer();
        let mut values = vec![1.0; 32];
        values[5] = f32::NAN;
        writer.set_f32(name, &[32], &values);
        assert_eq!(error(&writer.bytes()), ModelError::NotFinite(name.to_owned()));
    }
}

type Change<'a> = &'a dyn Fn(&mut Writer);

#[test]
fn invalid_tokenizer_tensors_are_refused() {
    let cases: [(&str, Change<'_>); 7] = [
        ("tokenizer.offsets", &|writer| {
            let mut offsets = vec![9; 21];
            offsets[0] = 0;
            writer.set_u32("tokenizer.offsets", &offsets);
        }),
        ("tokenizer.offsets", &|writer| {
            let mut offsets = vec![0; 21];
            offsets[3] = 3;
            writer.set_u32("tokenizer.offsets", &offsets);
        }),
        ("tokenizer.pieces", &|writer| {
            let bytes = vec![0xff; 5];
            writer.set("tokenizer.pieces", "u8", &[5], bytes);
        }),
        ("tokenizer.normalise.from", &|writer| writer.set_u32("tokenizer.normalise.from", &[3, 2, 1])),
        ("tokenizer.normalise.offsets", &|writer| {
            writer.set_u32("tokenizer.normalise.offsets", &[0, 2, 1, 4]);
        }),
        ("tokenizer.normalise.offsets", &|writer| {
            writer.set_u32("tokenizer.normalise.offsets", &[0, 1, 2, 5]);
        }),
        ("tokenizer.normalise.to", &|writer| {
            writer.set_u32("tokenizer.normalise.to", &[0x20, 0x20, 0xd800, 0x69]);
        }),
    ];
    for (faulty, change) in cases {
        let mut writer = writer();
        change(&mut writer);
        let error = error(&writer.bytes());
        assert!(matches!(error, ModelError::Tokenizer { name, .. } if name == faulty), "{faulty}: {error}");
    }
}
