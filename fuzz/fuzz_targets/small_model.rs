//! The model that ships, cut down to one layer of short vectors and few trees: it reads a conversation in a fraction of a
//! millisecond. Its predictions are arbitrary, and the rules must work with any.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Sizes of dimensions in the model that ships, and here. A dimension is recognised by its size alone: no other one may have it.
const KEPT_SIZES: [(usize, usize); 5] = [
    // `hidden`: one vector.
    (384, 16),
    // The two vectors of a message.
    (768, 32),
    // Input of the impression's head: four times two vectors.
    (3_072, 128),
    // Query, key and value.
    (1_152, 48),
    // `feed_forward`.
    (1_536, 16),
];

/// Bytes before the header of a model file, see `crates/encoder/src/file.rs`.
const PREFIX_LENGTH: usize = 16;
const ALIGNMENT: usize = 64;

/// The tensor with a row for each tree, and how many rows there are for each that is kept: no multiple of 3, 4 or 5, which would keep
/// the trees of one class alone.
const TREES: &str = "outcome.trees";
const TREES_PER_KEPT: usize = 23;

/// A model file with the first layer and the other tensors of `model`, each cut to [`KEPT_SIZES`], and with few trees.
pub fn small_model(model: &[u8]) -> Vec<u8> {
    let length = u32::from_le_bytes(model[PREFIX_LENGTH - 4..PREFIX_LENGTH].try_into().expect("four bytes"));
    let header_end = PREFIX_LENGTH + usize::try_from(length).expect("a length");
    let mut header: Value = serde_json::from_slice(&model[PREFIX_LENGTH..header_end]).expect("a header");
    let first_tensor = header_end.next_multiple_of(ALIGNMENT);
    let (mut tensors, mut content) = (Vec::new(), Vec::new());
    for tensor in header["tensors"].as_array().expect("tensors") {
        let name = tensor["name"].as_str().expect("a name");
        if name.starts_with("layer.") && !name.starts_with("layer.0.") {
            continue;
        }
        let shape: Vec<usize> = serde_json::from_value(tensor["shape"].clone()).expect("a shape");
        let rows_per_kept = if name == TREES { TREES_PER_KEPT } else { 1 };
        let mut kept: Vec<usize> = shape.iter().map(|size| kept_size(*size)).collect();
        kept[0] = kept[0].div_ceil(rows_per_kept);
        let number_bytes = if matches!(tensor["dtype"].as_str(), Some("f32" | "u32")) { 4 } else { 1 };
        let offset: usize = serde_json::from_value(tensor["offset"].clone()).expect("an offset");
        tensors.push(json!({"name": name, "dtype": tensor["dtype"], "shape": kept, "offset": content.len()}));
        let row_bytes = shape.last().expect("a dimension") * number_bytes;
        let kept_bytes = kept.last().expect("a dimension") * number_bytes;
        let rows = model[first_tensor + offset..].chunks_exact(row_bytes).step_by(rows_per_kept);
        let kept_rows: usize = kept[..kept.len() - 1].iter().product();
        content.extend(rows.take(kept_rows).flat_map(|row| &row[..kept_bytes]));
        content.resize(content.len().next_multiple_of(ALIGNMENT), 0);
    }
    header["tensors"] = Value::Array(tensors);
    // `hidden` and `feed_forward` as in `KEPT_SIZES`.
    for (name, value) in [("hidden", 16), ("heads", 1), ("feed_forward", 16), ("layers", 1)] {
        header[name] = json!(value);
    }
    let header = header.to_string();
    let mut file = model[..PREFIX_LENGTH - 4].to_vec();
    file.extend(u32::try_from(header.len()).expect("a short header").to_le_bytes());
    file.extend(header.as_bytes());
    file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
    file.extend(content);
    let checksum = Sha256::digest(&file);
    file.extend_from_slice(&checksum);
    file
}

fn kept_size(size: usize) -> usize {
    KEPT_SIZES.iter().find(|(whole, _)| *whole == size).map_or(size, |(_, kept)| *kept)
}
