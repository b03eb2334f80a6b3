//! The options of adapters and quantised weights.

use budget::{Block8, Lora, Matrix, Mlp, Model, Precision, Quantization, Targets};
use clap::{Args, ValueEnum};

use super::config::ModelConfig;
use super::count;

/// Formats of quantised weights as arguments.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum QuantizeName {
    /// Not quantised, whatever the file says
    None,
    /// 8 bits, with a scale for each row (LLM.int8)
    Int8,
    /// 4 bits, with a 32-bit constant for each 64 weights (QLoRA)
    Nf4,
    /// 4 bits, with constants that are quantised too
    Nf4Double,
    /// 4 bits for experts, as gpt-oss has it
    Mxfp4,
    /// 8 bits with a scale for each 128 × 128 weights, as DeepSeek-V3 has it
    Fp8,
}

/// The options of adapters and quantised weights.
#[derive(Args, Debug)]
#[command(next_help_heading = "Adapters and quantization")]
pub(super) struct Adapters {
    /// Train low-rank adapters (LoRA) of this rank instead of the weights
    #[arg(long, value_name = "R")]
    lora_rank: Option<String>,
    /// Matrices with an adapter, separated by commas: q, k, v, qkv (one matrix), o, gate, up, down, or all [default: q,v]
    #[arg(long, value_name = "LIST", requires = "lora_rank")]
    lora_targets: Option<String>,
    /// Format of the weights of linear layers [default: as --precision]
    #[arg(long, value_enum)]
    quantize: Option<QuantizeName>,
    /// Plan what PEFT's prepare_model_for_kbit_training leaves: all that is not quantised in 32 bits, and --checkpoint full
    #[arg(long)]
    kbit_training: bool,
}

impl Adapters {
    /// Returns whether the format of weights is given.
    pub(super) fn is_format_given(&self) -> bool {
        self.quantize.is_some()
    }

    /// Returns whether weights are prepared for adapters.
    pub(super) fn is_prepared(&self) -> bool {
        self.kbit_training
    }

    /// Returns a model with the adapters and the format of weights that are given.
    pub(super) fn of(&self, model: Model, config: Option<&ModelConfig>) -> Result<Model, String> {
        let quantization = match self.quantize {
            None => config.and_then(|config| config.model.quantization),
            Some(QuantizeName::None) => None,
            Some(QuantizeName::Int8) => Some(Quantization::Int8),
            Some(QuantizeName::Nf4) => Some(Quantization::Nf4),
            Some(QuantizeName::Nf4Double) => Some(Quantization::Nf4Double),
            Some(QuantizeName::Mxfp4) => Some(Quantization::Mxfp4),
            Some(QuantizeName::Fp8) => Some(Quantization::Fp8(Block8::USUAL)),
        };
        let lora = match &self.lora_rank {
            None => None,
            Some(rank) => {
                let rank = count::parse("--lora-rank", rank, "numbers between an adapter's matrices")?;
                let targets = match &self.lora_targets {
                    None => [Matrix::Query, Matrix::Value].into_iter().collect(),
                    Some(list) => targets(list, model.mlp)?,
                };
                Some(Lora { rank, targets })
            }
        };
        let is_prepared = self.kbit_training;
        // What is computed from weights in 32 bits has 32 bits, unless torch.autocast casts it.
        let precision = match model.precision {
            Precision::Mixed | Precision::Bf16 if is_prepared => Precision::Fp32,
            precision => precision,
        };
        Ok(Model { quantization, lora, is_prepared, precision, ..model })
    }
}

/// Reads a list of matrices: short names, or those of Transformers.
fn targets(list: &str, mlp: Mlp) -> Result<Targets, String> {
    if matches!(list.trim(), "all" | "all-linear") {
        let is_there = |matrix: &Matrix| *matrix != Matrix::Fused && (*matrix != Matrix::Gate || mlp == Mlp::Gated);
        return Ok(Matrix::ALL.into_iter().filter(is_there).collect());
    }
    let matrix = |name: &str| {
        let short = name.trim().strip_suffix("_proj").unwrap_or(name.trim());
        let found = Matrix::ALL.into_iter().find(|matrix| matrix.name() == short);
        found.ok_or_else(|| {
            let known: Vec<&str> = Matrix::ALL.into_iter().map(Matrix::name).collect();
            format!("--lora-targets: there is no matrix {name:?}. Name some of {}, or all.", known.join(", "))
        })
    };
    list.split(',').map(matrix).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_matrices() {
        let names = |list: &str, mlp| {
            targets(list, mlp).map(|targets| targets.iter().map(Matrix::name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("q,v", Mlp::Plain).as_deref(), Ok("q v"));
        assert_eq!(names("v_proj, q_proj,o", Mlp::Plain).as_deref(), Ok("q v o"));
        assert_eq!(names("all", Mlp::Plain).as_deref(), Ok("q k v o up down"));
        assert_eq!(names("all-linear", Mlp::Gated).as_deref(), Ok("q k v o gate up down"));
        for list in ["", "q,", "query", "q;v", "lm_head"] {
            assert!(names(list, Mlp::Plain).is_err_and(|error| error.contains("Name some of q, k, v, qkv")), "{list}");
        }
    }
}
