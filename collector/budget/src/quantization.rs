//! Weights that are stored in fewer bits than they are computed with.

use serde::Serialize;

use super::model::Model;
use super::weights::Linear;

/// How the matrices of the layers are stored. Embeddings, norms, biases and the output layer are not quantised.
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
}

/// Weights in a block of 4-bit weights with one constant.
const BLOCK: u64 = 64;
/// Constants in a block of quantised constants.
const CONSTANTS: u64 = 256;

impl Quantization {
    /// Returns the bytes of the tensors that a matrix is stored as: its weights, and their constants.
    pub fn tensors(self, linear: Linear) -> Vec<u64> {
        let blocks = linear.matrix.div_ceil(BLOCK);
        match self {
            Self::Int8 => vec![linear.matrix, 4 * linear.outputs],
            Self::Nf4 => vec![linear.matrix.div_ceil(2), 4 * blocks],
            Self::Nf4Double => vec![linear.matrix.div_ceil(2), blocks, 4 * blocks.div_ceil(CONSTANTS)],
        }
    }

    /// Returns the formula of the bytes of `Q` weights.
    pub fn formula(self) -> &'static str {
        match self {
            Self::Int8 => "Q + 4 × rows",
            Self::Nf4 => "Q/2 + 4Q/64",
            Self::Nf4Double => "Q/2 + Q/64 + 4Q/(64 × 256)",
        }
    }

    /// Returns the source of the format.
    pub fn source(self) -> &'static str {
        match self {
            Self::Int8 => "Dettmers et al. 2022, LLM.int8(), section 2.1",
            Self::Nf4 | Self::Nf4Double => "Dettmers et al. 2023, QLoRA, section 3",
        }
    }
}

impl Model {
    /// Returns the linear layers of one layer, outside of its experts and in each of its MLPs.
    pub(super) fn layer_linears(&self) -> (Vec<Linear>, Vec<Linear>) {
        (self.attention_linears().into_iter().chain(self.router()).collect(), self.mlp_linears())
    }

    /// Returns the bytes of the tensors of a linear layer.
    pub fn linear_bytes(&self, linear: Linear) -> Vec<u64> {
        let element = self.precision.weight();
        match self.quantization {
            None => linear.tensors().map(|numbers| numbers * element).collect(),
            Some(quantization) => {
                let bias = (linear.bias > 0).then_some(linear.bias * element);
                quantization.tensors(linear).into_iter().chain(bias).collect()
            }
        }
    }

    /// Returns the number of quantised weights.
    pub fn quantized_weights(&self) -> u64 {
        if self.quantization.is_none() {
            return 0;
        }
        let (outside, inside) = self.layer_linears();
        let sum = |list: &[Linear]| list.iter().map(|linear| u128::from(linear.matrix)).sum::<u128>();
        let all = u128::from(self.layers) * (sum(&outside) + sum(&inside) * u128::from(self.mlps()));
        u64::try_from(all).unwrap_or(u64::MAX)
    }
}
