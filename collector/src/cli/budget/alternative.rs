//! What would make a model fit that does not.

use budget::{Checkpointing, Lora, Matrix, Model, Optimizer, Parallel, Plan, Quantization};
use serde::Serialize;

/// The numbers of devices that are tried.
const DEVICES: [u64; 7] = [2, 4, 8, 16, 32, 64, 128];
/// The rank of adapters that are tried, as most guides have it.
const RANK: u64 = 16;

/// Options with which a model fits, and what it needs with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Alternative {
    /// The options to add.
    pub(super) options: String,
    /// The planned peak of a device.
    pub(super) peak_bytes: u64,
}

impl Alternative {
    /// Returns the first options that make a model fit into `usable_bytes`, from those that change least about the run to those that
    /// take more devices; `None` if none of them does.
    pub(super) fn of(model: &Model, usable_bytes: u64) -> Option<Self> {
        candidates(model).find_map(|(options, model)| {
            model.check().ok()?;
            let peak_bytes = Plan::new(&model).peak_bytes;
            (peak_bytes <= usable_bytes).then_some(Self { options, peak_bytes })
        })
    }
}

/// Options to add, and the model that they make.
type Candidate = (String, Model);

/// Returns what holds less than a model: first on as many devices, each on top of the one before, then on more.
fn candidates(model: &Model) -> impl Iterator<Item = Candidate> {
    let trains = model.optimizer != Optimizer::Inference;
    let (is_whole, is_alone) = (model.quantization.is_none(), model.parallel == Parallel::ONE);
    let start = (String::new(), *model);
    let recomputes = (trains && model.checkpointing == Checkpointing::None)
        .then(|| with(&start, "--checkpoint full", |model| Model { checkpointing: Checkpointing::Every(1), ..model }));
    let before = recomputes.clone().unwrap_or(start);
    let adapted = (trains && model.lora.is_none() && is_whole).then(|| {
        let targets = [Matrix::Query, Matrix::Value].into_iter().collect();
        with(&before, &format!("--lora-rank {RANK}"), |model| Model {
            lora: Some(Lora { rank: RANK, targets }),
            ..model
        })
    });
    let quantized = is_whole.then(|| {
        let before = adapted.as_ref().unwrap_or(&before);
        with(before, "--quantize nf4", |model| Model { quantization: Some(Quantization::Nf4), ..model })
    });
    let divided = DEVICES.into_iter().filter(move |_| is_alone).map(move |devices| match trains {
        true => with(&before, &format!("--zero 3 --data {devices}"), |model| Model {
            parallel: Parallel { data: devices, zero: 3, ..model.parallel },
            ..model
        }),
        false => with(&before, &format!("--tensor {devices}"), |model| Model {
            parallel: Parallel { tensor: devices, ..model.parallel },
            ..model
        }),
    });
    recomputes.into_iter().chain(adapted).chain(quantized).chain(divided)
}

/// Returns a candidate with an option more.
fn with((options, model): &Candidate, option: &str, change: impl Fn(Model) -> Model) -> Candidate {
    ([options.as_str(), option].join(" ").trim().to_owned(), change(*model))
}

#[cfg(test)]
mod tests {
    use super::super::command_tests::command;
    use super::*;

    #[test]
    fn what_does_not_fit_would_with_other_options() {
        const GIB: u64 = 1 << 30;
        for (words, gib, want) in [
            ("llama-3-8b --lora-rank 16 --quantize nf4 --seq 8k", 23, Some("--checkpoint full")),
            ("llama-3-8b --lora-rank 16 --quantize nf4 --seq 8k --checkpoint full --data 2", 4, None),
            ("llama-3-8b", 80, Some("--checkpoint full --lora-rank 16")),
            ("llama-3-8b", 10, Some("--checkpoint full --lora-rank 16 --quantize nf4")),
            ("llama-3-70b --optimizer none", 80, Some("--quantize nf4")),
            ("llama-3-70b --optimizer none", 24, Some("--tensor 8")),
            ("llama-3-70b --data 2 --zero 3", 8, None),
        ] {
            let (model, _) = command(words).model().expect(words);
            let found = Alternative::of(&model, gib * GIB);
            assert_eq!(found.as_ref().map(|found| &*found.options), want, "{words}");
            if let Some(Alternative { options, peak_bytes }) = found {
                // Typed, they are that model.
                let (typed, _) =
                    command(&format!("{words} {options}")).model().expect("the options are those of the command");
                assert_eq!(Plan::new(&typed).peak_bytes, peak_bytes, "{words} {options}");
            }
        }
    }
}
