//! Writes model files with random weights.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test uses a part of it, and a test fails by panicking"
)]

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The sizes of a random model.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    pub hidden: usize,
    pub heads: usize,
    pub feed_forward: usize,
    pub layers: usize,
    pub vocabulary: usize,
    pub positions: usize,
}

/// Builds a model file.
#[derive(Clone)]
pub struct Writer {
    pub header: Value,
    tensors: Vec<(String, &'static str, Vec<usize>, Vec<u8>)>,
}

/// Xorshift: the same seed gives the same model.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit
    }

    /// From −1 to 1.
    pub fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}

impl Writer {
    /// A model whose pieces are the given ones; the rest of the vocabulary are markers.
    pub fn random(sizes: Sizes, seed: u64, pieces: &[&str]) -> Self {
        let Sizes { hidden, heads, feed_forward, layers, vocabulary, positions } = sizes;
        let header = json!({
            "name": "random", "version": "1", "hidden": hidden, "heads": heads, "feed_forward": feed_forward,
            "layers": layers, "vocabulary": vocabulary, "max_positions": positions, "layer_norm_epsilon": 1e-12,
            "bos_id": 0, "unk_id": 1, "metadata": {"seed": seed},
        });
        let mut writer = Self { header, tensors: Vec::new() };
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        writer.add_tokenizer(vocabulary, pieces);
        writer.add_weights("embedding.word", &[vocabulary, hidden], &mut random);
        writer.add_numbers("embedding.word.scale", &[vocabulary], 0.0, 0.01, &mut random);
        writer.add_numbers("embedding.position", &[positions, hidden], 0.0, 0.5, &mut random);
        writer.add_norm("embedding.norm", hidden, &mut random);
        for layer in 0..layers {
            let parts = [
                ("qkv", 3 * hidden, hidden),
                ("output", hidden, hidden),
                ("up", feed_forward, hidden),
                ("down", hidden, feed_forward),
            ];
            for (part, outputs, inputs) in parts {
                let name = format!("layer.{layer}.{part}");
                let scale = 0.02 / (inputs as f32).sqrt();
                writer.add_weights(&format!("{name}.weight"), &[outputs, inputs], &mut random);
                writer.add_numbers(&format!("{name}.scale"), &[outputs], scale, scale / 2.0, &mut random);
                writer.add_numbers(&format!("{name}.bias"), &[outputs], 0.0, 0.5, &mut random);
            }
            writer.add_norm(&format!("layer.{layer}.attention_norm"), hidden, &mut random);
            writer.add_norm(&format!("layer.{layer}.output_norm"), hidden, &mut random);
        }
        writer
    }

    pub fn set(&mut self, name: &str, dtype: &'static str, shape: &[usize], bytes: Vec<u8>) {
        self.remove(name);
        self.tensors.push((name.to_owned(), dtype, shape.to_vec(), bytes));
    }

    pub fn set_u32(&mut self, name: &str, values: &[u32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.set(name, "u32", &[values.len()], bytes);
    }

    pub fn set_f32(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.set(name, "f32", shape, bytes);
    }

    pub fn remove(&mut self, name: &str) {
        self.tensors.retain(|(other, ..)| other != name);
    }

    pub fn tensor_list(&self) -> Vec<Value> {
        let mut offset = 0;
        let mut list = Vec::new();
        for (name, dtype, shape, bytes) in &self.tensors {
            list.push(json!({"name": name, "dtype": dtype, "shape": shape, "offset": offset}));
            offset += bytes.len().next_multiple_of(64);
        }
        list
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_with(self.tensor_list())
    }

    /// The file with this list of tensors in its header.
    pub fn bytes_with(&self, list: Vec<Value>) -> Vec<u8> {
        let mut header = self.header.clone();
        header["tensors"] = Value::Array(list);
        let header = header.to_string();
        let mut file = b"ASSAYENC".to_vec();
        file.extend(1_u32.to_le_bytes());
        file.extend(u32::try_from(header.len()).unwrap().to_le_bytes());
        file.extend(header.as_bytes());
        for (.., bytes) in &self.tensors {
            file.resize(file.len().next_multiple_of(64), 0);
            file.extend(bytes);
        }
        seal(file)
    }

    fn add_tokenizer(&mut self, vocabulary: usize, pieces: &[&str]) {
        let mut text = String::new();
        let mut offsets = vec![0];
        for id in 0..vocabulary {
            text.push_str(pieces.get(id).copied().unwrap_or_default());
            offsets.push(u32::try_from(text.len()).unwrap());
        }
        let scores: Vec<f32> = (0..vocabulary).map(|id| -1.0 - (id % 97) as f32 / 10.0).collect();
        self.set("tokenizer.pieces", "u8", &[text.len()], text.into_bytes());
        self.set_u32("tokenizer.offsets", &offsets);
        self.set_f32("tokenizer.scores", &[vocabulary], &scores);
        self.set_u32("tokenizer.normalise.from", &[0xa0, 0x3000, 0xfb01]);
        self.set_u32("tokenizer.normalise.offsets", &[0, 1, 2, 4]);
        self.set_u32("tokenizer.normalise.to", &[0x20, 0x20, 0x66, 0x69]);
    }

    fn add_weights(&mut self, name: &str, shape: &[usize], random: &mut Random) {
        let count = shape.iter().product();
        let bytes = (0..count).map(|_| (random.below(255) as i64 - 127) as u8).collect();
        self.set(name, "i8", shape, bytes);
    }

    fn add_numbers(&mut self, name: &str, shape: &[usize], middle: f32, spread: f32, random: &mut Random) {
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| middle + spread * random.number()).collect();
        self.set_f32(name, shape, &values);
    }

    fn add_norm(&mut self, name: &str, hidden: usize, random: &mut Random) {
        self.add_numbers(&format!("{name}.weight"), &[hidden], 1.0, 0.2, random);
        self.add_numbers(&format!("{name}.bias"), &[hidden], 0.0, 0.2, random);
    }
}

/// Appends the checksum.
pub fn seal(mut file: Vec<u8>) -> Vec<u8> {
    let sum = Sha256::digest(&file);
    file.extend(sum.as_slice());
    file
}
