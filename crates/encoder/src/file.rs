//! The model file: a header that lists the tensors, the tensors, a checksum.
//!
//! ```text
//! "ASSAYENC"  8 bytes
//! format      u32, little endian, like every number here
//! length      u32, bytes of the header
//! header      JSON
//! padding     zeros up to a multiple of 64
//! tensors     each at an offset that is a multiple of 64, relative to the first
//! checksum    SHA-256 of everything before it
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::error::ModelError;

/// The version of the format that this crate reads.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"ASSAYENC";
const PREFIX_LENGTH: usize = 16;
const CHECKSUM_LENGTH: usize = 32;
const ALIGNMENT: usize = 64;

/// Metadata of the model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// Name of the model.
    pub name: String,
    /// Version of the model.
    pub version: String,
    /// Dimension of the vectors.
    pub hidden: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the feed-forward part.
    pub feed_forward: usize,
    /// Transformer layers.
    pub layers: usize,
    /// Ids in the vocabulary.
    pub vocabulary: usize,
    /// The most ids that can be encoded at once.
    pub max_positions: usize,
    /// Added to the variance in layer normalisation.
    pub layer_norm_epsilon: f32,
    /// Id of the marker in front of a text.
    pub bos_id: u32,
    /// Id of characters that no piece covers.
    pub unk_id: u32,
    /// Free-form metadata of the file's writer.
    #[serde(default)]
    pub metadata: serde_json::Value,
}

/// A file with a valid checksum, and the location of its tensors.
pub(crate) struct ModelFile<'a> {
    pub(crate) header: Header,
    pub(crate) sha256: String,
    data: &'a [u8],
    specs: BTreeMap<String, TensorSpec>,
}

/// A tensor of floating-point numbers that does not belong to the encoder.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

#[derive(Deserialize)]
struct FullHeader {
    #[serde(flatten)]
    header: Header,
    tensors: Vec<TensorEntry>,
}

#[derive(Deserialize)]
struct TensorEntry {
    name: String,
    #[serde(flatten)]
    spec: TensorSpec,
}

#[derive(Deserialize)]
struct TensorSpec {
    dtype: ElementType,
    shape: Vec<usize>,
    offset: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ElementType {
    I8,
    U8,
    U32,
    F32,
}

impl ElementType {
    fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::U8 => "u8",
            Self::U32 => "u32",
            Self::F32 => "f32",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 => 1,
            Self::U32 | Self::F32 => 4,
        }
    }
}

impl TensorSpec {
    /// End of the tensor, relative to the first one; `None` on overflow.
    fn end(&self) -> Option<usize> {
        let numbers = self.shape.iter().try_fold(1_usize, |product, &size| product.checked_mul(size))?;
        self.offset.checked_add(numbers.checked_mul(self.dtype.bytes())?)
    }
}

impl<'a> ModelFile<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, ModelError> {
        let header_length = read_prefix(bytes)?;
        let header_end = PREFIX_LENGTH.saturating_add(header_length);
        check_length(bytes, header_end.saturating_add(CHECKSUM_LENGTH))?;
        let (content, checksum) = bytes.split_at(bytes.len().saturating_sub(CHECKSUM_LENGTH));
        let digest = Sha256::digest(content);
        let is_intact = digest.as_slice() == checksum;
        // If the checksum is wrong, too, the file is damaged: that is the better explanation.
        let explain = |error: serde_json::Error| {
            if is_intact { ModelError::Header(error.to_string()) } else { ModelError::Checksum }
        };
        let FullHeader { header, tensors } =
            serde_json::from_slice(content.get(PREFIX_LENGTH..header_end).unwrap_or_default())
                .map_err(explain)?;

        let data_start = header_end.next_multiple_of(ALIGNMENT);
        let data_length =
            tensors.iter().map(|entry| entry.spec.end().unwrap_or(usize::MAX)).max().unwrap_or(0);
        check_length(bytes, data_start.saturating_add(data_length).saturating_add(CHECKSUM_LENGTH))?;
        if !is_intact {
            return Err(ModelError::Checksum);
        }

        let mut specs = BTreeMap::new();
        for TensorEntry { name, spec } in tensors {
            if !spec.offset.is_multiple_of(ALIGNMENT) {
                return Err(ModelError::Unaligned(name));
            }
            if specs.contains_key(&name) {
                return Err(ModelError::DuplicateTensor(name));
            }
            specs.insert(name, spec);
        }
        let sha256 = hex::encode(digest);
        Ok(Self { header, sha256, data: content.get(data_start..).unwrap_or_default(), specs })
    }

    /// The bytes of a tensor of signed 8-bit integers.
    pub(crate) fn take_i8(&mut self, name: &str, shape: &[usize]) -> Result<&'a [u8], ModelError> {
        self.take(name, ElementType::I8, Some(shape))
    }

    /// The bytes of a one-dimensional tensor of any length.
    pub(crate) fn take_u8(&mut self, name: &str) -> Result<&'a [u8], ModelError> {
        self.take(name, ElementType::U8, None)
    }

    pub(crate) fn take_u32(&mut self, name: &str, length: Option<usize>) -> Result<Vec<u32>, ModelError> {
        let shape = length.map(|length| [length]);
        let bytes = self.take(name, ElementType::U32, shape.as_ref().map(|shape| &shape[..]))?;
        Ok(bytes.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect())
    }

    pub(crate) fn take_f32(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, ModelError> {
        decode_f32(name, self.take(name, ElementType::F32, Some(shape))?)
    }

    /// The tensors that were not taken, except those of integers, which nothing reads.
    pub(crate) fn into_other_tensors(self) -> Result<BTreeMap<String, Tensor>, ModelError> {
        let data = self.data;
        let mut others = BTreeMap::new();
        for (name, spec) in self.specs {
            if spec.dtype == ElementType::F32 {
                let values = decode_f32(&name, tensor_bytes(data, &spec))?;
                others.insert(name, Tensor { shape: spec.shape, values });
            }
        }
        Ok(others)
    }

    fn take(
        &mut self,
        name: &str,
        dtype: ElementType,
        shape: Option<&[usize]>,
    ) -> Result<&'a [u8], ModelError> {
        let spec = self.specs.remove(name).ok_or_else(|| ModelError::MissingTensor(name.to_owned()))?;
        if spec.dtype != dtype {
            let (expected, found) = (dtype.name(), spec.dtype.name());
            return Err(ModelError::WrongType { name: name.to_owned(), expected, found });
        }
        let has_shape = shape.map_or(spec.shape.len() == 1, |shape| spec.shape == shape);
        if !has_shape {
            let expected = shape.unwrap_or(&[]).to_vec();
            return Err(ModelError::WrongShape { name: name.to_owned(), expected, found: spec.shape });
        }
        Ok(tensor_bytes(self.data, &spec))
    }
}

/// Checks the magic bytes and the version; returns the length of the header.
fn read_prefix(bytes: &[u8]) -> Result<usize, ModelError> {
    if !bytes.starts_with(MAGIC) {
        return Err(ModelError::NotAModel);
    }
    let numbers = bytes.get(MAGIC.len()..PREFIX_LENGTH).unwrap_or_default();
    let &[version, length] = numbers.as_chunks::<4>().0 else {
        return Err(ModelError::Truncated { expected: PREFIX_LENGTH, found: bytes.len() });
    };
    let found = u32::from_le_bytes(version);
    if found != FORMAT_VERSION {
        return Err(ModelError::FormatVersion { found, expected: FORMAT_VERSION });
    }
    Ok(usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX))
}

fn check_length(bytes: &[u8], expected: usize) -> Result<(), ModelError> {
    if bytes.len() < expected {
        return Err(ModelError::Truncated { expected, found: bytes.len() });
    }
    Ok(())
}

/// The bytes of a tensor; `parse` has checked that it lies within the data.
fn tensor_bytes<'a>(data: &'a [u8], spec: &TensorSpec) -> &'a [u8] {
    spec.end().and_then(|end| data.get(spec.offset..end)).unwrap_or_default()
}

fn decode_f32(name: &str, bytes: &[u8]) -> Result<Vec<f32>, ModelError> {
    let values: Vec<f32> = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
    if values.iter().all(|value| value.is_finite()) {
        Ok(values)
    } else {
        Err(ModelError::NotFinite(name.to_owned()))
    }
}
