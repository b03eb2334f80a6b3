//! The weights of a model, tensor by tensor and as a formula.

use super::model::Model;
use super::shape::{Block, Mlp, Norm};
use super::sum::Letter::{self, Experts, Ffn, HeadWidth, Heads, Hidden, KvHeads, Positions, SharedExperts, Vocab};
use super::sum::Sum;

/// Where in a layer of the model a linear layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Queries, keys, values and the projection.
    Attention,
    /// What chooses a token's experts.
    Router,
    /// The MLP, if the layer has no experts.
    Mlp,
    /// An expert.
    Expert,
}

/// The numbers in the weights of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Where it is.
    pub place: Place,
    /// Numbers in the matrix.
    pub matrix: u64,
    /// Numbers in the bias; 0 if there is none.
    pub bias: u64,
    /// Columns of the matrix.
    pub inputs: u64,
    /// Rows of the matrix.
    pub outputs: u64,
}

/// Some weights of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Piece {
    /// A tensor of numbers.
    Numbers(u64),
    /// A linear layer.
    Linear(Linear),
}

impl Linear {
    pub(super) fn new(place: Place, inputs: u64, outputs: u64, has_bias: bool) -> Self {
        Self { place, matrix: inputs * outputs, bias: if has_bias { outputs } else { 0 }, inputs, outputs }
    }

    /// Returns the tensors: the matrix, and the bias if there is one.
    pub fn tensors(self) -> impl Iterator<Item = u64> {
        [self.matrix, self.bias].into_iter().filter(|numbers| *numbers > 0)
    }
}

impl Model {
    /// Returns the weights of queries, keys and values, as one linear layer.
    pub fn qkv(&self) -> Linear {
        Linear::new(Place::Attention, self.hidden, self.qkv_width(), self.biases.qkv)
    }

    /// Returns the weights that project the attention's result.
    pub fn projection(&self) -> Linear {
        Linear::new(Place::Attention, self.attended_width(), self.hidden, self.biases.projection)
    }

    /// Returns the weights of each matrix that widens the residual stream, in the MLP or in one expert.
    pub fn widening(&self) -> Linear {
        Linear::new(self.mlp_place(), self.hidden, self.ffn, self.biases.mlp)
    }

    /// Returns the weights that narrow the MLP's result, or that of one expert.
    pub fn narrowing(&self) -> Linear {
        Linear::new(self.mlp_place(), self.ffn, self.hidden, self.biases.mlp)
    }

    fn mlp_place(&self) -> Place {
        if self.experts.is_some() { Place::Expert } else { Place::Mlp }
    }

    /// Returns the linear layers of attention, with queries, keys and values as one, in the order of their use.
    pub(super) fn attention_linears(&self) -> Vec<Linear> {
        match self.details.latent {
            Some(latent) => latent.linears(self).into_iter().chain([self.projection()]).collect(),
            None => vec![self.qkv(), self.projection()],
        }
    }

    /// Returns the linear layers of attention as the model stores them: queries, keys and values are apart, unless they are one
    /// matrix in the model too.
    pub(super) fn stored_attention(&self) -> Vec<Linear> {
        if self.details.latent.is_some() || self.details.is_qkv_fused {
            return self.attention_linears();
        }
        let widths = [self.query_width(), self.key_width(), self.key_width()];
        let apart = |width| Linear::new(Place::Attention, self.hidden, width, self.biases.qkv);
        widths.into_iter().map(apart).chain([self.projection()]).collect()
    }

    /// Returns the linear layers of the MLP, or of one expert.
    pub(super) fn mlp_linears(&self) -> Vec<Linear> {
        let mut all = vec![self.widening(); self.mlp.widening() as usize];
        all.push(self.narrowing());
        all
    }

    /// Returns the model whose layers are the first ones, and their number, if these have a plain MLP in place of experts.
    pub(super) fn dense(&self) -> Option<(Self, u64)> {
        let dense = self.details.dense.filter(|_| self.experts.is_some())?;
        Some((Self { experts: None, ffn: dense.ffn, ..*self }, dense.count.min(self.layers)))
    }

    /// Returns the layers that are not among the first ones with a plain MLP.
    pub(super) fn expert_layers(&self) -> u64 {
        self.layers - self.dense().map_or(0, |(_, count)| count)
    }

    /// Returns the weights of a layer's router, if it has experts.
    pub fn router(&self) -> Option<Linear> {
        self.experts
            .map(|_| Linear::new(Place::Router, self.hidden, self.routed_experts(), self.details.has_router_bias))
    }

    /// Returns the number of MLPs in a layer: all experts, or one.
    pub fn mlps(&self) -> u64 {
        self.experts.map_or(1, |experts| experts.count + experts.shared)
    }

    /// Returns the tensors of one norm.
    pub fn norm_tensors(&self) -> impl Iterator<Item = u64> {
        let hidden = self.hidden;
        (0..self.norm.tensors()).map(move |_| hidden)
    }

    /// Returns the weights of one layer outside of its MLPs, in the order of their use.
    pub(super) fn layer_pieces(&self) -> Vec<Piece> {
        let details = self.details;
        let norm = || self.norm_tensors().map(Piece::Numbers);
        let linears = |linears: Vec<Linear>| linears.into_iter().map(Piece::Linear);
        let mut all: Vec<Piece> = norm().collect();
        all.extend(linears(self.attention_linears()));
        let head = self.norm.tensors() * self.head_width();
        let heads = if details.has_head_norms { vec![Piece::Numbers(head); 2] } else { Vec::new() };
        all.extend(heads);
        all.extend(details.latent.into_iter().flat_map(|latent| latent.norms().map(Piece::Numbers)));
        all.extend(details.has_sinks.then_some(Piece::Numbers(self.heads)));
        if self.block.norms() > 1 {
            all.extend(norm());
        }
        if details.has_post_norms {
            all.extend(norm().chain(norm()));
        }
        all.extend(self.router().into_iter().map(Piece::Linear));
        all
    }

    /// Returns the tensors before the layers: the embedding, and learned positions.
    pub fn first_tensors(&self) -> impl Iterator<Item = u64> {
        let here = if self.share.has_embedding { 1 } else { 0 };
        let all = [here * self.vocab * self.hidden, here * self.positions * self.hidden];
        all.into_iter().filter(|numbers| *numbers > 0)
    }

    /// Returns the tensors after the layers: the last norm, and the output layer unless it is the embedding.
    pub fn last_tensors(&self) -> impl Iterator<Item = u64> {
        let head = if self.has_own_head() { self.vocab * self.hidden } else { 0 };
        let bias = if self.biases.head && self.share.has_head { self.vocab } else { 0 };
        let norms = if self.share.has_head { self.norm.tensors() } else { 0 };
        let hidden = self.hidden;
        (0..norms).map(move |_| hidden).chain([head, bias].into_iter().filter(|numbers| *numbers > 0))
    }

    /// Returns whether a device has an output layer of its own, with or without the embedding: the last stage of a
    /// pipeline has a copy.
    fn has_own_head(&self) -> bool {
        self.share.has_head && (!self.is_tied || !self.share.has_embedding)
    }

    /// Returns the numbers of all tensors, in order.
    pub fn tensors(&self) -> Vec<u64> {
        self.tensors_as(|piece| match piece {
            Piece::Numbers(numbers) => vec![numbers],
            Piece::Linear(linear) => linear.tensors().collect(),
        })
    }

    /// Returns the number of weights that the shape has, as a formula: `L (4h² + 9h + 2hf + f) + vh + 2h` for a GPT, and
    /// `L (2h² + 2hkd + 2h + 3hf) + 2vh + h` for a llama with grouped keys.
    pub fn shape_formula(&self) -> String {
        let (layer, ends) = self.shape_sums();
        let layers = match self.dense() {
            None => format!("L ({layer})"),
            Some((dense, count)) => format!("(L - {count}) ({layer}) + {count} ({})", dense.shape_sums().0),
        };
        match ends.to_string().as_str() {
            "" => layers,
            ends => format!("{layers} + {ends}"),
        }
    }

    /// Returns where the parts of the shape are described.
    pub fn shape_sources(&self) -> Vec<&'static str> {
        let shares_keys = self.kv_heads < self.heads;
        let all = [
            (true, "Vaswani et al. 2017, Attention Is All You Need"),
            (self.mlp == Mlp::Gated, "Shazeer 2020, GLU Variants Improve Transformer"),
            (self.norm != Norm::Layer, "Zhang and Sennrich 2019, Root Mean Square Layer Normalization"),
            (shares_keys && self.kv_heads == 1, "Shazeer 2019, Fast Transformer Decoding"),
            (shares_keys && self.kv_heads > 1, "Ainslie et al. 2023, GQA"),
            (self.block != Block::Sequential, "Black et al. 2022, GPT-NeoX-20B"),
            (self.experts.is_some(), "Jiang et al. 2024, Mixtral of Experts"),
            (self.details.latent.is_some(), "DeepSeek-AI 2024, DeepSeek-V2"),
        ];
        all.into_iter().filter(|(is_used, _)| *is_used).map(|(_, source)| source).collect()
    }

    /// Returns the weights of one layer, and those outside of the layers.
    fn shape_sums(&self) -> (Sum, Sum) {
        let bias = |has_bias: bool| u64::from(has_bias);
        let (query, key) = (self.query_letters(), self.key_letters());
        let details = self.details;
        let mut layer = match details.latent {
            None => Sum::default()
                .plus(2, &[&[Hidden], query].concat())
                .plus(2, &[&[Hidden], key].concat())
                .plus(bias(self.biases.qkv), query)
                .plus(2 * bias(self.biases.qkv), key)
                .plus(bias(self.biases.projection), &[Hidden]),
            // One number: the widths of the latent vectors have no letters.
            Some(latent) => {
                let linears = self.attention_linears().into_iter().flat_map(Linear::tensors);
                Sum::default().plus(linears.chain(latent.norms()).fold(0, u64::saturating_add), &[])
            }
        };
        let norms = self.block.norms() + 2 * bias(details.has_post_norms);
        layer = layer
            .plus(norms * self.norm.tensors(), &[Hidden])
            .plus(2 * bias(details.has_head_norms) * self.norm.tensors(), &[HeadWidth])
            .plus(bias(details.has_sinks), &[Heads]);
        let mlp = |sum: Sum, factor: u64, letters: &[Letter]| {
            let wide = self.mlp.widening();
            sum.plus(factor * (wide + 1), &[letters, &[Hidden, Ffn]].concat())
                .plus(factor * wide * bias(self.biases.mlp), &[letters, &[Ffn]].concat())
                .plus(factor * bias(self.biases.mlp), &[letters, &[Hidden]].concat())
        };
        layer = match self.experts {
            None => mlp(layer, 1, &[]),
            Some(experts) => {
                let routed = mlp(layer, 1, &[Experts])
                    .plus(1, &[self.routed_letter(), Hidden])
                    .plus(bias(details.has_router_bias), &[self.routed_letter()]);
                mlp(routed, u64::from(experts.shared > 0), &[SharedExperts])
            }
        };
        let share = self.share;
        let (first, last) = (u64::from(share.has_embedding), u64::from(share.has_head));
        let ends = Sum::default()
            .plus(first + u64::from(self.has_own_head()), &[Vocab, Hidden])
            .plus(first * u64::from(self.positions > 0), &[Positions, Hidden])
            .plus(last * self.norm.tensors(), &[Hidden])
            .plus(last * bias(self.biases.head), &[Vocab]);
        (layer, ends)
    }

    /// Returns the letter of the experts that the router chooses among.
    pub(super) fn routed_letter(&self) -> Letter {
        if self.share.routed.is_some() { Letter::RoutedExperts } else { Experts }
    }

    /// Returns the letter of the residual stream that a device holds for each token.
    pub(super) fn residual_letter(&self) -> Letter {
        if self.share.tokens > 1 { Letter::Residual } else { Hidden }
    }

    /// Returns the letters of the width of all queries: `h` if they are as wide as the residual stream, or else `ad`.
    pub(super) fn query_letters(&self) -> &'static [Letter] {
        if self.query_width() == self.hidden { &[Hidden] } else { &[Heads, HeadWidth] }
    }

    /// Returns the letters of the width of all keys: as of the queries, or `kd` if queries share keys.
    pub(super) fn key_letters(&self) -> &'static [Letter] {
        if self.kv_heads == self.heads { self.query_letters() } else { &[KvHeads, HeadWidth] }
    }

    /// Returns the number of weights that the shape has.
    pub(super) fn wide_shape_params(&self) -> u128 {
        let (layer, ends) = self.shape_sums();
        let dense = self
            .dense()
            .map_or(0, |(dense, count)| u128::from(count).saturating_mul(dense.shape_sums().0.value(&dense)));
        let layers = u128::from(self.expert_layers()).saturating_mul(layer.value(self));
        layers.saturating_add(dense).saturating_add(ends.value(self))
    }

    /// Returns the number of weights that the shape has.
    pub fn shape_params(&self) -> u64 {
        u64::try_from(self.wide_shape_params()).unwrap_or(u64::MAX)
    }

    /// Returns the number of weights: as given, or else that of the shape.
    pub fn weights(&self) -> u64 {
        self.params.unwrap_or_else(|| self.shape_params())
    }

    /// Returns the numbers of one expert.
    pub(super) fn expert_weights(&self) -> u64 {
        self.mlp_linears().into_iter().flat_map(Linear::tensors).fold(0, u64::saturating_add)
    }

    /// Returns the numbers outside of the layers, and those of one layer.
    pub(super) fn ends_and_layer(&self) -> (u128, u128) {
        let (layer, ends) = self.shape_sums();
        (ends.value(self), layer.value(self))
    }

    /// Returns the number of weights that process one token, if the shape has experts and their number follows from it.
    pub fn active_weights(&self) -> Option<u64> {
        let experts = self.experts.filter(|_| self.params.is_none())?;
        let expert = self.expert_weights();
        let idle = u128::from(self.expert_layers()) * u128::from(experts.count.saturating_sub(experts.active));
        let active = self.wide_shape_params().saturating_sub(idle.saturating_mul(u128::from(expert)));
        Some(u64::try_from(active).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::GPT3;
    use super::super::shape;
    use super::super::shape::Biases;
    use super::*;

    /// Llama 3 8B, from its published `config.json`.
    const LLAMA: Model = Model {
        layers: 32,
        hidden: 4_096,
        heads: 32,
        kv_heads: 8,
        ffn: 14_336,
        vocab: 128_256,
        mlp: Mlp::Gated,
        norm: Norm::Rms,
        biases: Biases::NONE,
        is_tied: false,
        ..GPT3
    };
    const EIGHT: shape::Experts = shape::Experts { count: 8, active: 2, shared: 0 };

    #[test]
    fn the_weights_of_published_models() {
        let mixtral = Model { vocab: 32_000, experts: Some(EIGHT), ..LLAMA };
        let qkv = Biases { qkv: true, ..Biases::NONE };
        let parallel = Model { hidden: 4_544, heads: 71, kv_heads: 1, ffn: 18_176, vocab: 65_024, ..GPT3 };
        let cases = [
            ("llama 3 8B", LLAMA, 8_030_261_248, "L (2h² + 2hkd + 2h + 3hf) + 2vh + h"),
            (
                "llama 2 7B",
                Model { kv_heads: 32, ffn: 11_008, vocab: 32_000, ..LLAMA },
                6_738_415_616,
                "L (4h² + 2h + 3hf) + 2vh + h",
            ),
            (
                "llama 3 70B",
                Model { layers: 80, hidden: 8_192, heads: 64, ffn: 28_672, ..LLAMA },
                70_553_706_496,
                "L (2h² + 2hkd + 2h + 3hf) + 2vh + h",
            ),
            ("mixtral 8x7B", mixtral, 46_702_792_704, "L (2h² + 2hkd + 2h + 3Ehf + Eh) + 2vh + h"),
            ("mistral 7B", Model { vocab: 32_000, ..LLAMA }, 7_241_732_096, "L (2h² + 2hkd + 2h + 3hf) + 2vh + h"),
            (
                "qwen 2 7B",
                Model {
                    layers: 28,
                    hidden: 3_584,
                    heads: 28,
                    kv_heads: 4,
                    ffn: 18_944,
                    vocab: 152_064,
                    biases: qkv,
                    ..LLAMA
                },
                7_615_616_512,
                "L (2h² + 2hkd + 3h + 2kd + 3hf) + 2vh + h",
            ),
            (
                "mistral nemo",
                Model { layers: 40, hidden: 5_120, head_dim: Some(128), vocab: 131_072, ..LLAMA },
                12_247_782_400,
                "L (2had + 2hkd + 2h + 3hf) + 2vh + h",
            ),
            (
                "gpt 2",
                Model {
                    layers: 12,
                    hidden: 768,
                    heads: 12,
                    kv_heads: 12,
                    ffn: 3_072,
                    vocab: 50_257,
                    positions: 1_024,
                    ..GPT3
                },
                124_439_808,
                "L (4h² + 9h + 2hf + f) + vh + nh + 2h",
            ),
            (
                "falcon 7B",
                Model { layers: 32, biases: Biases::NONE, block: Block::ParallelOneNorm, ..parallel },
                6_921_720_704,
                "L (2h² + 2hkd + 2h + 2hf) + vh + 2h",
            ),
        ];
        for (name, model, want, formula) in cases {
            assert_eq!(model.check(), Ok(()), "{name}");
            assert_eq!(model.weights(), want, "{name}");
            assert_eq!(model.shape_formula(), formula, "{name}");
        }
        assert_eq!(mixtral.active_weights(), Some(12_879_925_248));
        assert_eq!(LLAMA.active_weights(), None);
    }

    #[test]
    fn the_formula_counts_every_tensor() {
        let shared = shape::Experts { count: 6, active: 2, shared: 2 };
        let bases = [GPT3, LLAMA, Model { head_dim: Some(100), ..LLAMA }, Model { positions: 77, ..GPT3 }];
        for base in bases {
            for experts in [None, Some(EIGHT), Some(shared)] {
                for block in [Block::Sequential, Block::Parallel, Block::ParallelOneNorm] {
                    for biases in [Biases::ALL, Biases::NONE, Biases { head: true, mlp: false, ..Biases::ALL }] {
                        for mlp in [Mlp::Plain, Mlp::Gated] {
                            let model = Model { experts, block, biases, mlp, ..base };
                            assert_eq!(model.tensors().iter().sum::<u64>(), model.shape_params(), "{model:?}");
                        }
                    }
                }
            }
        }
    }
}
