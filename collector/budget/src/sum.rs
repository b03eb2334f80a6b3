//! Formulas: sums of products, which are computed and printed from the same terms, so that what is printed is what was
//! computed.

use std::fmt;

use super::model::Model;

/// A number of the model, by the letter that formulas use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letter {
    /// Layers, `L`.
    Layers,
    /// Hidden size, `h`.
    Hidden,
    /// Attention heads, `a`.
    Heads,
    /// Heads of keys and values, `k`.
    KvHeads,
    /// Width of a head, `d`.
    HeadWidth,
    /// Width of the MLP or of each expert, `f`.
    Ffn,
    /// Size of the vocabulary, `v`.
    Vocab,
    /// Tokens in a sequence, `s`.
    Seq,
    /// Sequences in a batch, `b`.
    Batch,
    /// Learned positions, `n`.
    Positions,
    /// Experts of a layer, `E`.
    Experts,
    /// Experts that process each token, `A`.
    ActiveExperts,
    /// Experts that process every token, `S`.
    SharedExperts,
    /// Experts that the router chooses among, if a device has only some of them, `R`.
    RoutedExperts,
    /// The part of the hidden size that a device holds for each token, if tokens are divided, `g`.
    Residual,
    /// Rank of the adapters, `r`.
    Rank,
}

impl Letter {
    /// All letters, in the order in which they are explained.
    pub const ALL: [Self; 16] = [
        Self::Layers,
        Self::Hidden,
        Self::Heads,
        Self::KvHeads,
        Self::HeadWidth,
        Self::Ffn,
        Self::Vocab,
        Self::Seq,
        Self::Batch,
        Self::Positions,
        Self::Experts,
        Self::ActiveExperts,
        Self::SharedExperts,
        Self::RoutedExperts,
        Self::Residual,
        Self::Rank,
    ];

    /// Returns the letter.
    pub fn symbol(self) -> char {
        match self {
            Self::Layers => 'L',
            Self::Hidden => 'h',
            Self::Heads => 'a',
            Self::KvHeads => 'k',
            Self::HeadWidth => 'd',
            Self::Ffn => 'f',
            Self::Vocab => 'v',
            Self::Seq => 's',
            Self::Batch => 'b',
            Self::Positions => 'n',
            Self::Experts => 'E',
            Self::ActiveExperts => 'A',
            Self::SharedExperts => 'S',
            Self::RoutedExperts => 'R',
            Self::Residual => 'g',
            Self::Rank => 'r',
        }
    }

    /// Returns what the number counts, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Layers => "layers",
            Self::Hidden => "hidden size",
            Self::Heads => "heads",
            Self::KvHeads => "key and value heads",
            Self::HeadWidth => "head width",
            Self::Ffn => "MLP width",
            Self::Vocab => "vocabulary size",
            Self::Seq => "tokens per sequence",
            Self::Batch => "sequences per batch",
            Self::Positions => "learned positions",
            Self::Experts => "experts per layer",
            Self::ActiveExperts => "active experts per token",
            Self::SharedExperts => "shared experts per layer",
            Self::RoutedExperts => "experts per layer on all devices",
            Self::Residual => "hidden size, divided",
            Self::Rank => "rank of the adapters",
        }
    }

    /// Returns the model's number.
    pub fn number(self, model: &Model) -> u64 {
        match self {
            Self::Layers => model.layers,
            Self::Hidden => model.hidden,
            Self::Heads => model.heads,
            Self::KvHeads => model.kv_heads,
            Self::HeadWidth => model.head_width(),
            Self::Ffn => model.ffn,
            Self::Vocab => model.vocab,
            Self::Seq => model.seq,
            Self::Batch => model.batch,
            Self::Positions => model.positions,
            Self::Experts => model.experts.map_or(0, |experts| experts.count),
            Self::ActiveExperts => model.experts.map_or(0, |experts| experts.active),
            Self::SharedExperts => model.experts.map_or(0, |experts| experts.shared),
            Self::RoutedExperts => model.share.routed.unwrap_or(0),
            Self::Residual => {
                if model.share.tokens > 1 {
                    model.residual_width()
                } else {
                    0
                }
            }
            Self::Rank => model.lora.map_or(0, |lora| lora.rank),
        }
    }
}

/// A sum of products.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sum(Vec<Term>);

/// A product of a factor and numbers of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    factor: u64,
    letters: Vec<Letter>,
}

impl Sum {
    /// Adds a product to the term with the same letters, or as a new term.
    pub fn plus(mut self, factor: u64, letters: &[Letter]) -> Self {
        if let Some(term) = self.0.iter_mut().find(|term| term.letters == letters) {
            term.factor = term.factor.saturating_add(factor);
            return self;
        }
        self.plus_apart(factor, letters)
    }

    /// Adds a product as a new term, which shows where it comes from.
    pub fn plus_apart(mut self, factor: u64, letters: &[Letter]) -> Self {
        if factor > 0 {
            self.0.push(Term { factor, letters: letters.to_vec() });
        }
        self
    }

    /// Returns the sum for a model.
    pub fn value(&self, model: &Model) -> u128 {
        let product = |term: &Term| {
            let numbers = term.letters.iter().map(|letter| u128::from(letter.number(model)));
            numbers.fold(u128::from(term.factor), u128::saturating_mul)
        };
        self.0.iter().map(product).fold(0, u128::saturating_add)
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, term) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" + ")?;
            }
            if term.factor != 1 || term.letters.is_empty() {
                write!(f, "{}", term.factor)?;
            }
            // Equal letters are adjacent, and no formula has a third power.
            for same in term.letters.chunk_by(|a, b| a == b) {
                for letter in same.iter().take(1) {
                    write!(f, "{}", letter.symbol())?;
                }
                if same.len() == 2 {
                    f.write_str("²")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::GPT3;
    use super::Letter::{Batch, Ffn, Heads, Hidden, Seq};
    use super::*;

    #[test]
    fn a_sum_is_printed_as_it_is_computed() {
        let sum = Sum::default()
            .plus(1, &[Hidden, Hidden])
            .plus(2, &[Hidden, Ffn])
            .plus(3, &[Hidden, Hidden])
            .plus(0, &[Seq])
            .plus_apart(1, &[Hidden, Hidden])
            .plus(5, &[Heads, Seq, Seq, Batch])
            .plus(7, &[]);
        assert_eq!(sum.to_string(), "4h² + 2hf + h² + 5as²b + 7");
        let (h, f) = (12_288, 49_152);
        assert_eq!(sum.value(&GPT3), 5 * h * h + 2 * h * f + 5 * 96 * 2_048 * 2_048 + 7);
    }

    #[test]
    fn every_letter_is_another() {
        for (i, letter) in Letter::ALL.into_iter().enumerate() {
            assert!(Letter::ALL[..i].iter().all(|other| other.symbol() != letter.symbol()), "{letter:?}");
        }
    }
}
