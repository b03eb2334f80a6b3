//! Weights that are stored in fewer bits than they are computed with.

use serde::Serialize;

use super::method::Optimizer;
use super::model::{Model, ModelError};
use super::weights::{Linear, Place};

/// How matrices of the layers are stored. Embeddings, norms, biases and the output layer are not quantised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantization {
    /// LLM.int8 (Dettmers et al. 2022): 8 bits a weight, and a 32-bit scale for each row of a matrix.
    Int8,
    /// 4-bit NormalFloat (Dettmers et al. 2023, QLoRA): 4 bits a weight, and a 32-bit constant for each block of 64.
    Nf4,
    /// 4-bit NormalFloat whose constants are quantised, too: 8 bits for each block of 64 weights, and a 32-bit constant for
    /// each 256 of these.
    Nf4Double,
    /// 4-bit floating point with scales in 8 bits (OCP Microscaling Formats), for experts only, as gpt-oss has it: 16 bytes and
    /// one of the scale for each 32 weights of a row.
    Mxfp4,
    /// 8-bit floating point (DeepSeek-AI 2024, DeepSeek-V3): a byte a weight, and a 32-bit scale for each block of a matrix.
    /// Routers are not quantised.
    Fp8(Block8),
}

/// The weights of a matrix that share a scale in [`Quantization::Fp8`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Block8 {
    /// Rows of a block.
    pub rows: u64,
    /// Columns of a block.
    pub columns: u64,
}

impl Block8 {
    /// The blocks of DeepSeek-V3.
    pub const USUAL: Self = Self { rows: 128, columns: 128 };
}

/// Weights in a block of 4-bit weights with one constant.
const BLOCK: u64 = 64;
/// Constants in a block of quantised constants.
const CONSTANTS: u64 = 256;
/// Weights of a row with one scale, in microscaling formats.
const MICRO_BLOCK: u64 = 32;

impl Quantization {
    /// Returns whether the format stores the matrices of a place.
    pub fn stores(self, place: Place) -> bool {
        match self {
            Self::Int8 | Self::Nf4 | Self::Nf4Double => true,
            Self::Mxfp4 => place == Place::Expert,
            Self::Fp8(_) => place != Place::Router,
        }
    }

    /// Returns the bytes of the tensors that a matrix is stored as: its weights, and their constants.
    pub fn tensors(self, linear: Linear) -> Vec<u64> {
        let blocks = linear.matrix.div_ceil(BLOCK);
        match self {
            Self::Int8 => vec![linear.matrix, 4 * linear.outputs],
            Self::Nf4 => vec![linear.matrix.div_ceil(2), 4 * blocks],
            Self::Nf4Double => vec![linear.matrix.div_ceil(2), blocks, 4 * blocks.div_ceil(CONSTANTS)],
            Self::Mxfp4 => {
                let blocks = linear.outputs * linear.inputs.div_ceil(MICRO_BLOCK);
                vec![MICRO_BLOCK / 2 * blocks, blocks]
            }
            Self::Fp8(Block8 { rows, columns }) => {
                let blocks = linear.outputs.div_ceil(rows.max(1)) * linear.inputs.div_ceil(columns.max(1));
                vec![linear.matrix, 4 * blocks]
            }
        }
    }

    /// Checks that a model can have its weights in the format.
    pub(super) fn check(self, model: &Model) -> Result<(), ModelError> {
        let trains = model.optimizer != Optimizer::Inference;
        match self {
            Self::Mxfp4 if model.experts.is_none() => Err(ModelError::NoExperts(self.name())),
            Self::Mxfp4 | Self::Fp8(_) if trains => Err(ModelError::Untrainable(self.name())),
            _ if trains && model.lora.is_none() => Err(ModelError::Quantized),
            _ => Ok(()),
        }
    }

    /// Returns the name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::Nf4 => "nf4",
            Self::Nf4Double => "nf4-double",
            Self::Mxfp4 => "mxfp4",
            Self::Fp8(_) => "fp8",
        }
    }

    /// Returns what is stored how, for people.
    pub fn described(self) -> String {
        match self {
            Self::Int8 => "matrices of the layers in 8 bits with a 32-bit scale for each row".to_owned(),
            Self::Nf4 => "matrices of the layers in 4 bits with a 32-bit constant for each 64 weights".to_owned(),
            Self::Nf4Double => {
                "matrices of the layers in 4 bits with an 8-bit constant for each 64 weights, quantised again"
                    .to_owned()
            }
            Self::Mxfp4 => "experts' matrices in MXFP4 (4 bits, and a scale of 8 bits for each 32 weights)".to_owned(),
            Self::Fp8(Block8 { rows, columns }) => format!(
                "matrices of the layers but routers in FP8 (8 bits, and a 32-bit scale for each {rows} × {columns} weights)"
            ),
        }
    }

    /// Returns the formula of the bytes of `Q` weights.
    pub fn formula(self) -> &'static str {
        match self {
            Self::Int8 => "Q + 4 × rows",
            Self::Nf4 => "Q/2 + 4Q/64",
            Self::Nf4Double => "Q/2 + Q/64 + 4Q/(64 × 256)",
            Self::Mxfp4 => "Q/2 + Q/32",
            Self::Fp8(_) => "Q + 4 × blocks",
        }
    }

    /// Returns the source of the format.
    pub fn source(self) -> &'static str {
        match self {
            Self::Int8 => "Dettmers et al. 2022, LLM.int8(), section 2.1",
            Self::Nf4 | Self::Nf4Double => "Dettmers et al. 2023, QLoRA, section 3",
            Self::Mxfp4 => "Open Compute Project 2023, Microscaling Formats (MX) 1.0; Transformers' Mxfp4GptOssExperts",
            Self::Fp8(_) => "DeepSeek-AI 2024, DeepSeek-V3, section 3.3.2; Transformers' FP8Linear",
        }
    }
}

impl Model {
    /// Returns the linear layers of one layer, outside of its experts and in each of its MLPs.
    pub(super) fn layer_linears(&self) -> (Vec<Linear>, Vec<Linear>) {
        (self.stored_attention().into_iter().chain(self.router()).collect(), self.mlp_linears())
    }

    /// Returns the bytes of the tensors of a linear layer.
    pub fn linear_bytes(&self, linear: Linear) -> Vec<u64> {
        let element = self.precision.weight();
        match self.quantization.filter(|quantization| quantization.stores(linear.place)) {
            None => linear.tensors().map(|numbers| numbers * element).collect(),
            Some(quantization) => {
                let bias = (linear.bias > 0).then_some(linear.bias * element);
                quantization.tensors(linear).into_iter().chain(bias).collect()
            }
        }
    }

    /// Returns the number of quantised weights.
    pub fn quantized_weights(&self) -> u64 {
        let Some(quantization) = self.quantization else { return 0 };
        let sum = |list: Vec<Linear>| {
            let stored = list.into_iter().filter(|linear| quantization.stores(linear.place));
            stored.map(|linear| u128::from(linear.matrix)).sum::<u128>()
        };
        let of_layer = |model: &Self| {
            let (outside, inside) = model.layer_linears();
            sum(outside) + sum(inside) * u128::from(model.mlps())
        };
        let dense = self.dense().map_or(0, |(dense, count)| u128::from(count) * of_layer(&dense));
        u64::try_from(u128::from(self.expert_layers()) * of_layer(self) + dense).unwrap_or(u64::MAX)
    }
}
