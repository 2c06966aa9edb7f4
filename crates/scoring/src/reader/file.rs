//! The model file: a header that lists tables of numbers, the tables, a checksum.
//!
//! ```text
//! "ASSAYRDR"  8 bytes
//! length      u32, bytes of the header, little endian like every number here
//! header      JSON
//! tables      one behind the other
//! checksum    SHA-256 of everything before it
//! ```

use std::collections::BTreeMap;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::facts::hex;

const MAGIC: &[u8; 8] = b"ASSAYRDR";
const PREFIX: usize = 12;
const CHECKSUM: usize = 32;

/// Why a file cannot be used as the reader's model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file does not begin like a model.
    #[error("this is not a model file of Assay: it does not begin with ASSAYRDR; name the file that `make reader` writes")]
    NotAModel,
    /// The file ends too early, or its bytes are not those that were written.
    #[error("the model file is damaged: its checksum is wrong; copy it again")]
    Damaged,
    /// The header cannot be read.
    #[error("the header of the model file cannot be read ({0}); fit the model again with this version")]
    Header(String),
    /// Fitted for another version of Assay.
    #[error("the model was fitted for features {found}, this version of Assay computes features {expected}; fit it again")]
    Features {
        /// As the model says.
        found: u32,
        /// What this version computes.
        expected: u32,
    },
    /// A table is missing or has another size.
    #[error("the table {name} of the model file has {found} numbers, expected {expected}; fit the model again")]
    Table {
        /// Of the table.
        name: &'static str,
        /// Numbers that are needed.
        expected: usize,
        /// Numbers that are there.
        found: usize,
    },
    /// A table holds something that no fit gives.
    #[error("the table {0} of the model file holds impossible numbers; fit the model again")]
    Values(&'static str),
}

/// A model file whose checksum is right.
#[derive(Debug)]
pub(super) struct ModelFile<'a> {
    /// What the file says about the model.
    pub header: serde_json::Value,
    /// The checksum, which names this model and no other.
    pub sha256: String,
    tables: BTreeMap<String, &'a [u8]>,
}

#[derive(Deserialize)]
struct Tables {
    tables: Vec<(String, usize)>,
}

impl<'a> ModelFile<'a> {
    /// Checks the file and finds its tables.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, ModelError> {
        if !bytes.starts_with(MAGIC) {
            return Err(ModelError::NotAModel);
        }
        let (content, checksum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(ModelError::Damaged)?;
        let sum = Sha256::digest(content);
        if sum.as_slice() != checksum {
            return Err(ModelError::Damaged);
        }
        let length = content.get(MAGIC.len()..PREFIX).and_then(|bytes| bytes.try_into().ok());
        let length = u32::from_le_bytes(length.ok_or(ModelError::Damaged)?) as usize;
        let header = content.get(PREFIX..PREFIX.saturating_add(length)).ok_or(ModelError::Damaged)?;
        let unreadable = |error: serde_json::Error| ModelError::Header(error.to_string());
        let header: serde_json::Value = serde_json::from_slice(header).map_err(unreadable)?;
        let listed: Tables = serde_json::from_value(header.clone()).map_err(unreadable)?;
        let mut tables = BTreeMap::new();
        let mut start = PREFIX + length;
        for (name, bytes) in listed.tables {
            let end = start.saturating_add(bytes);
            tables.insert(name, content.get(start..end).ok_or(ModelError::Damaged)?);
            start = end;
        }
        Ok(Self { header, sha256: hex(&sum), tables })
    }

    /// A table of signed bytes.
    pub(super) fn i8(&self, name: &'static str, length: usize) -> Result<Vec<i8>, ModelError> {
        let bytes = self.table(name);
        sized(name, length, bytes.iter().map(|byte| byte.cast_signed()).collect())
    }

    /// A table of whole numbers; of any length without one.
    pub(super) fn u32(&self, name: &'static str, length: Option<usize>) -> Result<Vec<u32>, ModelError> {
        let numbers: Vec<u32> =
            self.table(name).as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        sized(name, length.unwrap_or(numbers.len()), numbers)
    }

    /// A table of numbers.
    pub(super) fn f32(&self, name: &'static str, length: usize) -> Result<Vec<f32>, ModelError> {
        let numbers: Vec<f32> =
            self.table(name).as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if !numbers.iter().all(|number| number.is_finite()) {
            return Err(ModelError::Values(name));
        }
        sized(name, length, numbers)
    }

    fn table(&self, name: &str) -> &'a [u8] {
        self.tables.get(name).copied().unwrap_or_default()
    }
}

fn sized<T>(name: &'static str, expected: usize, numbers: Vec<T>) -> Result<Vec<T>, ModelError> {
    let found = numbers.len();
    if found == expected { Ok(numbers) } else { Err(ModelError::Table { name, expected, found }) }
}
