//! Low-rank adapters, which are trained while the weights are frozen (Hu et al. 2021).

use serde::{Serialize, Serializer};

use super::model::Model;
use super::shape::Mlp;
use super::sum::Letter::{self, Experts, Ffn, Hidden, Rank, SharedExperts};
use super::sum::Sum;

/// A matrix of a layer that can have an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// Queries, as a matrix of its own.
    Query,
    /// Keys, as a matrix of its own.
    Key,
    /// Values, as a matrix of its own.
    Value,
    /// Queries, keys and values as one matrix, as in GPT-2, GPT-NeoX and Falcon.
    Fused,
    /// The projection of the attention's result.
    Projection,
    /// The matrix of a gated MLP whose result goes through the activation function.
    Gate,
    /// The matrix that widens the residual stream.
    Up,
    /// The matrix that narrows the MLP's result.
    Down,
}

impl Matrix {
    /// All matrices, in the order of their use.
    pub const ALL: [Self; 8] =
        [Self::Query, Self::Key, Self::Value, Self::Fused, Self::Projection, Self::Gate, Self::Up, Self::Down];

    /// Returns the short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Query => "q",
            Self::Key => "k",
            Self::Value => "v",
            Self::Fused => "qkv",
            Self::Projection => "o",
            Self::Gate => "gate",
            Self::Up => "up",
            Self::Down => "down",
        }
    }

    /// Returns whether the matrix belongs to the MLP.
    fn is_in_mlp(self) -> bool {
        matches!(self, Self::Gate | Self::Up | Self::Down)
    }
}

/// A set of matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Targets(u8);

impl Targets {
    /// Returns the set with a matrix.
    #[must_use]
    pub const fn with(self, matrix: Matrix) -> Self {
        Self(self.0 | 1 << matrix as u8)
    }

    /// Returns whether the set has a matrix.
    pub const fn has(self, matrix: Matrix) -> bool {
        self.0 & (1 << matrix as u8) != 0
    }

    /// Returns the matrices in order.
    pub fn iter(self) -> impl Iterator<Item = Matrix> {
        Matrix::ALL.into_iter().filter(move |matrix| self.has(*matrix))
    }
}

impl FromIterator<Matrix> for Targets {
    fn from_iter<I: IntoIterator<Item = Matrix>>(matrices: I) -> Self {
        matrices.into_iter().fold(Self::default(), Self::with)
    }
}

impl Serialize for Targets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Matrix::name))
    }
}

/// Low-rank adapters of frozen weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lora {
    /// The rank: the width between an adapter's two matrices.
    pub rank: u64,
    /// The matrices of each layer that have an adapter.
    pub targets: Targets,
}

/// A problem with the targets of adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no target.
    #[error("adapters need a target, such as q and v")]
    None,
    /// A plain MLP has no gate.
    #[error("the target gate needs a gated MLP")]
    Gate,
    /// The fused matrix and a part of it were both named.
    #[error("the target qkv is one matrix of queries, keys and values: name it, or q, k and v")]
    Fused,
}

impl Lora {
    /// Checks that the model has the targets.
    pub(super) fn check(self, model: &Model) -> Result<(), TargetError> {
        let has = |matrix| self.targets.has(matrix);
        if self.targets == Targets::default() {
            return Err(TargetError::None);
        }
        if has(Matrix::Gate) && model.mlp == Mlp::Plain {
            return Err(TargetError::Gate);
        }
        if has(Matrix::Fused) && [Matrix::Query, Matrix::Key, Matrix::Value].into_iter().any(has) {
            return Err(TargetError::Fused);
        }
        Ok(())
    }
}

impl Model {
    /// Returns the numbers of the two matrices of an adapter: of rank by inputs, and of outputs by rank. Without adapters
    /// or if the matrix is no target, there are none.
    pub fn adapter(&self, matrix: Matrix) -> Option<[u64; 2]> {
        let lora = self.lora.filter(|lora| lora.targets.has(matrix))?;
        let (inputs, outputs) = match matrix {
            Matrix::Query => (self.hidden, self.query_width()),
            Matrix::Key | Matrix::Value => (self.hidden, self.key_width()),
            Matrix::Fused => (self.hidden, self.qkv_width()),
            Matrix::Projection => (self.query_width(), self.hidden),
            Matrix::Gate | Matrix::Up => (self.hidden, self.ffn),
            Matrix::Down => (self.ffn, self.hidden),
        };
        Some([lora.rank.saturating_mul(inputs), lora.rank.saturating_mul(outputs)])
    }

    /// Returns the numbers of the adapters of one layer, outside of its MLP or experts and in each of them.
    #[cfg(test)]
    pub(super) fn layer_adapters(&self) -> (Vec<u64>, Vec<u64>) {
        let (inside, outside): (Vec<Matrix>, Vec<Matrix>) = Matrix::ALL.into_iter().partition(|m| m.is_in_mlp());
        let all = |list: Vec<Matrix>| list.into_iter().filter_map(|m| self.adapter(m)).flatten().collect();
        (all(outside), all(inside))
    }

    /// Returns the numbers of the adapters of one layer as a formula.
    pub(super) fn adapter_sum(&self, with_experts: bool) -> Sum {
        let mut sum = Sum::default();
        let (query, key) = (self.query_letters(), self.key_letters());
        for matrix in self.lora.into_iter().flat_map(|lora| lora.targets.iter()) {
            let sides: Vec<(u64, &[Letter])> = match matrix {
                Matrix::Query | Matrix::Projection => vec![(1, &[Hidden]), (1, query)],
                Matrix::Key | Matrix::Value => vec![(1, &[Hidden]), (1, key)],
                Matrix::Fused => vec![(1, &[Hidden]), (1, query), (2, key)],
                Matrix::Gate | Matrix::Up | Matrix::Down => vec![(1, &[Hidden]), (1, &[Ffn])],
            };
            let copies: &[&[Letter]] = match self.experts {
                Some(experts) if matrix.is_in_mlp() && experts.shared > 0 => &[&[Experts], &[SharedExperts]],
                Some(_) if matrix.is_in_mlp() => &[&[Experts]],
                _ => &[&[]],
            };
            for copy in copies.iter().filter(|copy| with_experts || !copy.contains(&Experts)) {
                for (factor, side) in &sides {
                    sum = sum.plus(*factor, &[*copy, &[Rank], *side].concat());
                }
            }
        }
        sum
    }

    /// Returns whether the backward pass needs the input of any of these matrices: those that are trained, or have an
    /// adapter. A frozen matrix needs only itself.
    pub fn keeps_input_of(&self, matrices: &[Matrix]) -> bool {
        self.lora.is_none_or(|lora| matrices.iter().any(|matrix| lora.targets.has(*matrix)))
    }

    /// Returns how many adapters each token passes outside of the MLP, and in the MLP or in one expert.
    pub(super) fn adapters_passed(&self) -> (u64, u64) {
        let targets = self.lora.map_or(Targets::default(), |lora| lora.targets);
        let inside = targets.iter().filter(|matrix| matrix.is_in_mlp()).count() as u64;
        (targets.iter().count() as u64 - inside, inside)
    }
}
