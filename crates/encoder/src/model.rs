//! A loaded model: tokenizer, encoder and the other tensors of its file.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::{EncodeError, ModelError};
use crate::file::{Header, ModelFile, Tensor};
use crate::forward::{Arithmetic, Embedding, Input, Kernel, Layer, Matrix, Norm, Portable, Transformer};
#[cfg(target_arch = "x86_64")]
use crate::forward::{Avx2, Avx512Vnni};
use crate::lanes::LANES;
use crate::tokenizer::Tokenizer;
use crate::workspace::Workspace;

/// A tokenizer and an encoder from one file, and the other tensors of that file.
pub struct Model {
    header: Header,
    sha256: String,
    tokenizer: Tokenizer,
    network: Network,
    tensors: BTreeMap<String, Tensor>,
}

enum Network {
    Portable(Transformer<Portable>),
    #[cfg(target_arch = "x86_64")]
    Avx2(Transformer<Avx2>),
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Transformer<Avx512Vnni>),
}

impl Model {
    /// Reads a model file for the fastest kernel of this processor. Copies what it needs of `bytes`.
    ///
    /// # Errors
    /// The file is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        Self::parse_for(bytes, Kernel::detect())
    }

    /// [`Model::parse`] for a given kernel.
    ///
    /// # Errors
    /// [`ModelError::Kernel`] if the processor lacks it, or the file is invalid.
    pub fn parse_for(bytes: &[u8], kernel: Kernel) -> Result<Self, ModelError> {
        Self::build(bytes, kernel, |words| Cow::Owned(words.to_vec()))
    }

    /// [`Model::parse`] of a file that is part of the program: the embeddings, the largest tensor, are borrowed, not copied.
    ///
    /// # Errors
    /// The file is invalid.
    pub fn parse_static(bytes: &'static [u8]) -> Result<Self, ModelError> {
        Self::build(bytes, Kernel::detect(), Cow::Borrowed)
    }

    /// `keep` copies or borrows the word embeddings.
    fn build<'a>(
        bytes: &'a [u8],
        kernel: Kernel,
        keep: impl Fn(&'a [u8]) -> Cow<'static, [u8]>,
    ) -> Result<Self, ModelError> {
        let mut file = ModelFile::parse(bytes)?;
        check_sizes(&file.header)?;
        let tokenizer = Tokenizer::parse(&mut file)?;
        let unavailable = ModelError::Kernel(kernel);
        let network = match kernel {
            Kernel::Portable => Network::Portable(read_transformer(&mut file, Portable, keep)?),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => {
                Network::Avx2(read_transformer(&mut file, Avx2::detect().ok_or(unavailable)?, keep)?)
            }
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512Vnni => Network::Avx512Vnni(read_transformer(
                &mut file,
                Avx512Vnni::detect().ok_or(unavailable)?,
                keep,
            )?),
            #[cfg(not(target_arch = "x86_64"))]
            Kernel::Avx2 | Kernel::Avx512Vnni => return Err(unavailable),
        };
        let (header, sha256) = (file.header.clone(), file.sha256.clone());
        Ok(Self { header, sha256, tokenizer, network, tensors: file.into_other_tensors()? })
    }

    /// Metadata: name, sizes, ids of the markers.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// SHA-256 of the file, 64 hexadecimal digits: identifies the model.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The kernel that this model runs with.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        match self.network {
            Network::Portable(_) => Kernel::Portable,
            #[cfg(target_arch = "x86_64")]
            Network::Avx2(_) => Kernel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Network::Avx512Vnni(_) => Kernel::Avx512Vnni,
        }
    }

    /// The values of an `f32` tensor that does not belong to the encoder.
    #[must_use]
    pub fn tensor_f32(&self, name: &str) -> Option<&[f32]> {
        self.tensors.get(name).map(|tensor| &tensor.values[..])
    }

    /// The shape of an `f32` tensor that does not belong to the encoder.
    #[must_use]
    pub fn tensor_shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|tensor| &tensor.shape[..])
    }

    /// Appends the ids of `text`, without markers at the start or the end.
    ///
    /// Takes time linear in the length of the text, which is not limited here: a caller who needs 300 ids should not
    /// pass a megabyte. Adjacent characters that no piece covers become one unknown id.
    pub fn tokenize(&self, text: &str, ids: &mut Vec<u32>) {
        self.tokenizer.tokenize(text, ids);
    }

    /// The vectors of the last layer, one for each id, `header().hidden` numbers each.
    ///
    /// `segment_ends` holds the end of each segment of ids. Attention is block-causal: an id attends to its own segment and to
    /// earlier ones, so later segments do not change its vectors. The first id is usually `header().bos_id`. The result
    /// does not depend on the kernel or the workspace.
    ///
    /// # Errors
    /// Too many ids, an id outside the vocabulary, or segments that do not cover the ids.
    pub fn encode(
        &self,
        ids: &[u32],
        segment_ends: &[usize],
        workspace: &mut Workspace,
    ) -> Result<Vec<f32>, EncodeError> {
        let input = self.check(ids, segment_ends)?;
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        Ok(match &self.network {
            Network::Portable(transformer) => Portable::encode(transformer, input, workspace),
            #[cfg(target_arch = "x86_64")]
            Network::Avx2(transformer) => Avx2::encode(transformer, input, workspace),
            #[cfg(target_arch = "x86_64")]
            Network::Avx512Vnni(transformer) => Avx512Vnni::encode(transformer, input, workspace),
        })
    }

    fn check<'a>(&self, ids: &'a [u32], segment_ends: &'a [usize]) -> Result<Input<'a>, EncodeError> {
        let Header { vocabulary, max_positions: limit, .. } = self.header;
        if ids.len() > limit {
            return Err(EncodeError::TooLong { found: ids.len(), limit });
        }
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= vocabulary) {
            return Err(EncodeError::UnknownId { id, vocabulary });
        }
        let starts = std::iter::once(&0).chain(segment_ends);
        let has_empty = starts.zip(segment_ends).any(|(start, end)| end <= start);
        if has_empty || segment_ends.last().copied().unwrap_or(0) != ids.len() {
            return Err(EncodeError::Segments { length: ids.len() });
        }
        Ok(Input { ids, segment_ends })
    }
}

fn check_sizes(header: &Header) -> Result<(), ModelError> {
    let Header { hidden, heads, feed_forward, layers, vocabulary, max_positions, .. } = *header;
    let is_multiple_of_lanes = |size: usize| (1..=MAX_SIZE).contains(&size) && size.is_multiple_of(LANES);
    let is_in_range = |size: usize| (1..=MAX_SIZE).contains(&size);
    let is_id = |id: u32| (id as usize) < vocabulary;
    let heads_fit = heads > 0 && hidden.is_multiple_of(heads) && is_multiple_of_lanes(hidden / heads);
    let multiple = "a multiple of 16, from 16 to 65536";
    let rules: [(&'static str, usize, bool, &'static str); 8] = [
        ("hidden", hidden, is_multiple_of_lanes(hidden), multiple),
        ("heads", heads, heads_fit, "a divisor of `hidden` that gives each head a multiple of 16 numbers"),
        ("feed_forward", feed_forward, is_multiple_of_lanes(feed_forward), multiple),
        ("layers", layers, is_in_range(layers), "from 1 to 65536"),
        ("vocabulary", vocabulary, vocabulary > 0, "at least 1"),
        ("max_positions", max_positions, is_in_range(max_positions), "from 1 to 65536"),
        ("bos_id", header.bos_id as usize, is_id(header.bos_id), "less than `vocabulary`"),
        ("unk_id", header.unk_id as usize, is_id(header.unk_id), "less than `vocabulary`"),
    ];
    if let Some((name, value, _, rule)) = rules.into_iter().find(|(_, _, is_valid, _)| !is_valid) {
        return Err(ModelError::Size { name, value, rule });
    }
    let epsilon = header.layer_norm_epsilon;
    if !epsilon.is_finite() || epsilon <= 0.0 {
        return Err(ModelError::Header(format!("layer_norm_epsilon = {epsilon}, which must be above 0")));
    }
    Ok(())
}

/// Limit of `hidden`, `feed_forward` and others: the sum of this many products of a signed and an unsigned byte fits 32 bits.
const MAX_SIZE: usize = 65_536;

fn read_transformer<'a, A: Arithmetic>(
    file: &mut ModelFile<'a>,
    arithmetic: A,
    keep: impl Fn(&'a [u8]) -> Cow<'static, [u8]>,
) -> Result<Transformer<A>, ModelError> {
    let Header { hidden, heads, layers, vocabulary, max_positions, layer_norm_epsilon: epsilon, .. } =
        file.header;
    let embedding = Embedding {
        words: keep(file.take_i8("embedding.word", &[vocabulary, hidden])?),
        scales: file.take_f32("embedding.word.scale", &[vocabulary])?,
        positions: file.take_f32("embedding.position", &[max_positions, hidden])?,
        norm: read_norm(file, "embedding.norm")?,
    };
    let layers = (0..layers).map(|layer| read_layer(file, layer)).collect::<Result<_, _>>()?;
    Ok(Transformer { arithmetic, embedding, layers, hidden, heads, epsilon })
}

fn read_layer<A: Arithmetic>(file: &mut ModelFile<'_>, layer: usize) -> Result<Layer<A>, ModelError> {
    let Header { hidden, feed_forward, .. } = file.header;
    let name = |part: &str| format!("layer.{layer}.{part}");
    Ok(Layer {
        qkv: read_matrix(file, &name("qkv"), 3 * hidden, hidden)?,
        output: read_matrix(file, &name("output"), hidden, hidden)?,
        up: read_matrix(file, &name("up"), feed_forward, hidden)?,
        down: read_matrix(file, &name("down"), hidden, feed_forward)?,
        attention_norm: read_norm(file, &name("attention_norm"))?,
        output_norm: read_norm(file, &name("output_norm"))?,
    })
}

fn read_matrix<A: Arithmetic>(
    file: &mut ModelFile<'_>,
    name: &str,
    outputs: usize,
    inputs: usize,
) -> Result<Matrix<A>, ModelError> {
    let rows = file.take_i8(&format!("{name}.weight"), &[outputs, inputs])?;
    let scales = file.take_f32(&format!("{name}.scale"), &[outputs])?;
    let biases = file.take_f32(&format!("{name}.bias"), &[outputs])?;
    Ok(Matrix::new(rows, inputs, &scales, &biases))
}

fn read_norm(file: &mut ModelFile<'_>, name: &str) -> Result<Norm, ModelError> {
    let hidden = [file.header.hidden];
    let weight = file.take_f32(&format!("{name}.weight"), &hidden)?;
    Ok(Norm { weight, bias: file.take_f32(&format!("{name}.bias"), &hidden)? })
}
