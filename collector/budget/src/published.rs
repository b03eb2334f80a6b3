//! The formulas against numbers that others have published.

use super::shape::{Biases, Experts, Mlp, Norm};
use super::*;

/// Llama 2 7B, from its published `config.json`.
const LLAMA_2: Model = Model {
    ffn: 11_008,
    mlp: Mlp::Gated,
    norm: Norm::Rms,
    biases: Biases::NONE,
    is_tied: false,
    ..Model::gpt(32, 4_096, 32, 32_000, 4_096, 1)
};
const LLAMA_3: Model = Model { kv_heads: 8, ffn: 14_336, vocab: 128_256, ..LLAMA_2 };
const MIXTRAL: Model = Model { vocab: 32_000, experts: Some(Experts { count: 8, active: 2, shared: 0 }), ..LLAMA_3 };
/// GPT-3, as Korthikanti et al. 2022 count it.
const GPT3: Model =
    Model { attention: Attention::Plain, dropout: true, ..Model::gpt(96, 12_288, 96, 51_200, 2_048, 1) };

const ALL: [Matrix; 7] =
    [Matrix::Query, Matrix::Key, Matrix::Value, Matrix::Projection, Matrix::Gate, Matrix::Up, Matrix::Down];

fn lora(rank: u64, matrices: &[Matrix]) -> Option<Lora> {
    Some(Lora { rank, targets: matrices.iter().copied().collect() })
}

/// What `print_trainable_parameters()` of PEFT prints.
#[test]
fn trained_weights_of_adapters() {
    let gpt2 = Model { positions: 1_024, ..Model::gpt(12, 768, 12, 50_257, 1_024, 1) };
    let qv = [Matrix::Query, Matrix::Value];
    let cases = [
        (LLAMA_2, 8, &qv[..], 4_194_304, "L (4rh)"),
        (LLAMA_3, 8, &qv, 3_407_872, "L (3rh + rkd)"),
        (LLAMA_2, 16, &ALL, 39_976_960, "L (11rh + 3rf)"),
        (LLAMA_3, 16, &ALL, 41_943_040, "L (9rh + 2rkd + 3rf)"),
        (gpt2, 8, &[Matrix::Fused], 294_912, "L (4rh)"),
        // Hu et al. 2021, section 4.2: GPT-3 with rank 4 on queries and values, 35 MB of 16-bit numbers.
        (GPT3, 4, &qv, 18_874_368, "L (4rh)"),
    ];
    for (model, rank, matrices, want, formula) in cases {
        let model = Model { lora: lora(rank, matrices), ..model };
        assert_eq!(model.check(), Ok(()));
        let adapters = Plan::new(&model).adapters.unwrap();
        assert_eq!((adapters.weights, adapters.formula.as_str()), (want, formula));
        assert_eq!(model.adapter_tensors().iter().sum::<u64>(), want);
        let plan = Plan::new(&model);
        let bytes = |part| plan.bytes(part);
        // 32 bits each: the adapter, its gradient and two moments; no master weights.
        assert_eq!(
            [Part::Adapters, Part::Gradients, Part::OptimizerState, Part::MasterWeights].map(bytes),
            [4 * want, 4 * want, 8 * want, 0]
        );
        assert_eq!(bytes(Part::Weights), 2 * model.weights());
    }
}

/// PEFT counts the packed bytes of a 4-bit matrix as its parameters: `all params: 3504607232` for Llama 2 7B with rank 8.
#[test]
fn quantised_weights() {
    let model =
        Model { quantization: Some(Quantization::Nf4), lora: lora(8, &[Matrix::Query, Matrix::Value]), ..LLAMA_2 };
    let quantized = model.quantized_weights();
    assert_eq!(quantized, 6_476_005_376);
    assert_eq!(model.weights() - quantized + quantized / 2 + 4_194_304, 3_504_607_232);

    // QLoRA, section 3: constants take 0.5 bits a weight, and 0.127 if they are quantised too.
    let rest = 2 * (model.weights() - quantized);
    let constants = |quantization| {
        let plan = Plan::new(&Model { quantization: Some(quantization), ..model });
        (plan.bytes(Part::Weights) - rest - quantized / 2) as f64 * 8.0 / quantized as f64
    };
    assert_eq!(constants(Quantization::Nf4), 0.5);
    assert_eq!(constants(Quantization::Nf4Double), 8.0 / 64.0 + 32.0 / (64.0 * 256.0));
    // LLM.int8: a byte a weight, and a 32-bit number for each row of seven matrices in each layer.
    let rows = 32 * (4 * 4_096 + 2 * 11_008 + 4_096);
    let int8 = Plan::new(&Model { quantization: Some(Quantization::Int8), ..model });
    assert_eq!(int8.bytes(Part::Weights), rest + quantized + 4 * rows);
}

/// What bitsandbytes 0.50 stores of two matrices, apart from a table and an offset of 68 bytes each.
#[test]
fn tensors_of_quantised_matrices() {
    let model = |hidden, ffn| Model { hidden, ffn, biases: Biases::NONE, ..LLAMA_2 };
    for (linear, nf4, double, int8) in [
        (model(512, 256).widening(), [65_536, 8_192], [65_536, 2_048, 32], [131_072, 4 * 256]),
        (model(130, 100).widening(), [6_500, 816], [6_500, 204, 4], [13_000, 4 * 100]),
    ] {
        assert_eq!(Quantization::Nf4.tensors(linear), nf4);
        assert_eq!(Quantization::Nf4Double.tensors(linear), double);
        assert_eq!(Quantization::Int8.tensors(linear), int8);
    }
}

/// The bytes of the tensors that autograd of PyTorch 2.11 saved for one Llama layer with adapters in 32 bits, with fused norms
/// and attention. Only the norms' statistics, two 32-bit numbers a token, are not planned.
#[test]
fn activations_that_autograd_saved() {
    let layer = Model { ffn: 352, precision: Precision::Fp32, ..LLAMA_2 };
    let layer = Model { hidden: 128, heads: 4, kv_heads: 4, seq: 64, batch: 2, ..layer };
    let cases: [(&[Matrix], u128); 5] = [
        (&[Matrix::Query, Matrix::Value], 1_010_688),
        (&ALL, 1_276_928),
        (&[Matrix::Projection], 941_056),
        (&[Matrix::Down], 1_121_280),
        (&[Matrix::Up], 1_006_592),
    ];
    for (matrices, saved) in cases {
        let model = Model { lora: lora(8, matrices), ..layer };
        assert_eq!(layer_activations(&model) + 2 * 4 * 2 * 64, saved, "{matrices:?}");
    }
}

/// Rajbhandari et al. 2020, table 1: GB for each device with 7.5 billion weights, Adam and mixed precision.
#[test]
fn zero_divides_model_states() {
    let table: [(u64, [f64; 3]); 6] = [
        (1, [120.0, 120.0, 120.0]),
        (4, [52.5, 41.3, 30.0]),
        (16, [35.6, 21.6, 7.5]),
        (64, [31.4, 16.6, 1.88]),
        (256, [30.4, 15.4, 0.47]),
        (1_024, [30.1, 15.1, 0.12]),
    ];
    for (data, want) in table {
        for (zero, want) in (1..).zip(want) {
            let zero = if data == 1 { 0 } else { zero };
            let parallel = Parallel { data, zero, ..Parallel::ONE };
            let model = Model { params: Some(7_500_000_000), parallel, ..GPT3 };
            assert_eq!(model.check(), Ok(()));
            let plan = Plan::new(&model);
            let parts = [Part::Weights, Part::MasterWeights, Part::Gradients, Part::OptimizerState];
            let bytes: u64 = parts.into_iter().map(|part| plan.bytes(part)).sum();
            // 2 + 2 + 12 bytes a weight, of which the last are divided, then the gradients, then all.
            let (p, n) = (7_500_000_000_f64, data as f64);
            let exact = match zero {
                0 => 16.0 * p,
                1 => 4.0 * p + 12.0 * p / n,
                2 => 2.0 * p + 14.0 * p / n,
                _ => 16.0 * p / n,
            };
            assert!((bytes as f64 - exact).abs() < 32.0, "{data} {zero}: {bytes}");
            let digits = if want < 2.0 { 100.0 } else { 10.0 };
            let is_equal = (bytes as f64 / 1e9 - want).abs() <= 0.5001 / digits;
            assert!(is_equal, "{data} {zero}: {bytes}, {want}");
        }
    }
}

/// Korthikanti et al. 2022, equations 2, 4 and 5.
#[test]
fn activations_of_a_layer_that_is_divided() {
    let (s, b, h, a) = (2_048_u128, 4_u128, 12_288_u128, 96_u128);
    let gpt3 = Model { batch: 4, ..GPT3 };
    for t in [2_u64, 4, 8] {
        let share = |sequence, pipeline, micro_batches| {
            let parallel = Parallel { tensor: t, sequence, pipeline, micro_batches, ..Parallel::ONE };
            let model = Model { parallel, ..gpt3 };
            assert_eq!(model.check(), Ok(()));
            model.shares()
        };
        let t = u128::from(t);
        let tensor = share(false, 1, 1)[0];
        assert_eq!(layer_activations(&tensor), s * b * h * (10 * t + 24) / t + 5 * a * s * s * b / t);
        let sequence = share(true, 1, 1)[0];
        assert_eq!(layer_activations(&sequence), (34 * s * b * h + 5 * a * s * s * b) / t);
        // The first stage holds as many batches as there are stages: the activations of all layers.
        let stages = share(true, 8, 64);
        let (first, last) = (stages[0], stages[1]);
        assert_eq!((first.layers, first.share.in_flight, last.share.in_flight), (12, 8, 1));
        let all = u128::from(first.layers * first.share.in_flight) * layer_activations(&first);
        assert_eq!(all, 96 * (34 * s * b * h + 5 * a * s * s * b) / t);
    }
}

#[test]
fn weights_of_a_share() {
    let whole = LLAMA_3.weights();
    // Norms are on every device, all else is divided.
    let norms = (2 * 32 + 1) * 4_096;
    for tensor in [2, 4, 8] {
        let model = Model { parallel: Parallel { tensor, ..Parallel::ONE }, ..LLAMA_3 };
        let plan = Plan::new(&model);
        let device = plan.device.unwrap();
        assert_eq!(device.weights, (whole - norms) / tensor + norms);
        assert_eq!(device.weights_formula, "L (2had + 2hkd + 2h + 3hf) + 2vh + h");
        assert_eq!(plan.params, whole);
    }
    // Two stages have half the layers each; one has the embedding, the other the last norm and the output layer.
    let stages = Model { parallel: Parallel { pipeline: 2, ..Parallel::ONE }, ..LLAMA_3 }.shares();
    let embedding = 128_256 * 4_096;
    let layers = whole - 2 * embedding - 4_096;
    assert_eq!(stages[0].weights(), layers / 2 + embedding);
    assert_eq!(stages[1].weights(), layers / 2 + embedding + 4_096);
    // A tied matrix is on both.
    let tied = Model { is_tied: true, ..stages[1] };
    assert_eq!(tied.weights(), stages[1].weights());
    // Experts are divided, the router is not: 8 experts of 3 × 4096 × 14336 weights in each of 32 layers.
    let expert = 32 * 3 * 4_096 * 14_336;
    for devices in [2, 4, 8] {
        let model = Model { parallel: Parallel { data: 8, expert: devices, ..Parallel::ONE }, ..MIXTRAL };
        assert_eq!(model.check(), Ok(()));
        assert_eq!(model.shares()[0].weights(), MIXTRAL.weights() - 8 * expert + 8 / devices * expert);
    }
}

/// The formulas count every tensor.
#[test]
fn tensors_add_up_to_the_formulas() {
    let parallels = [
        Parallel::ONE,
        Parallel { tensor: 4, ..Parallel::ONE },
        Parallel { pipeline: 4, micro_batches: 8, tensor: 2, ..Parallel::ONE },
        Parallel { data: 8, expert: 4, ..Parallel::ONE },
    ];
    let models =
        [LLAMA_3, MIXTRAL, Model { quantization: Some(Quantization::Nf4Double), lora: lora(8, &ALL), ..MIXTRAL }];
    for model in models {
        for parallel in parallels {
            let model = Model { parallel, ..model };
            if model.check().is_err() {
                assert!(parallel.expert > 1 && model.experts.is_none());
                continue;
            }
            for share in model.shares() {
                let plan = Plan::of(&model, &share);
                assert_eq!(share.stored_tensors().iter().sum::<u64>(), plan.bytes(Part::Weights), "{model:?}");
                let adapters = share.trained_element() * share.adapter_tensors().iter().sum::<u64>();
                assert_eq!(adapters, plan.bytes(Part::Adapters), "{model:?}");
            }
        }
    }
}

#[test]
fn what_cannot_be_divided_is_refused() {
    let with = |parallel: Parallel| Model { parallel, ..LLAMA_3 };
    let one = Parallel::ONE;
    let cases = [
        (with(Parallel { tensor: 3, ..one }), "heads (32) must be a multiple of tensor (3)"),
        (with(Parallel { tensor: 16, ..one }), "kv-heads (8) must be a multiple of tensor (16)"),
        (with(Parallel { tensor: 0, ..one }), "tensor must be between 1 and 65536"),
        (with(Parallel { pipeline: 5, ..one }), "layers (32) must be a multiple of pipeline (5)"),
        (with(Parallel { zero: 4, data: 8, ..one }), "zero must be between 0 and 3"),
        (with(Parallel { zero: 2, ..one }), "zero 2 divides among data-parallel devices: data must be more than 1"),
        (
            with(Parallel { sequence: true, ..one }),
            "sequence-parallel divides the tokens among tensor-parallel devices: tensor must be more than 1",
        ),
        (with(Parallel { expert: 2, data: 2, ..one }), "expert-parallel divides experts, and the model has none"),
        (
            Model { parallel: Parallel { expert: 4, data: 2, ..one }, ..MIXTRAL },
            "data (2) must be a multiple of expert-parallel (4)",
        ),
        (
            Model { params: Some(7), ..with(Parallel { tensor: 2, ..one }) },
            "params says nothing about single matrices, which dividing a model needs: describe the shape",
        ),
        (
            Model { quantization: Some(Quantization::Nf4), ..LLAMA_3 },
            "quantised weights can't be trained: add adapters, or leave out the optimizer",
        ),
        (Model { lora: lora(0, &ALL), ..LLAMA_3 }, "lora-rank must be between 1 and 65536"),
        (Model { lora: lora(8, &[]), ..LLAMA_3 }, "adapters need a target, such as q and v"),
        (Model { lora: lora(8, &[Matrix::Gate]), ..GPT3 }, "the target gate needs a gated MLP"),
        (
            Model { lora: lora(8, &[Matrix::Fused, Matrix::Key]), ..GPT3 },
            "the target qkv is one matrix of queries, keys and values: name it, or q, k and v",
        ),
    ];
    for (model, want) in cases {
        assert_eq!(model.check().map_err(|error| error.to_string()), Err(want.to_owned()));
    }
}

#[test]
fn the_largest_batch_fits_and_the_next_does_not() {
    for bytes in [1_u64 << 30, 24 << 30, 80 << 30, 1 << 60] {
        let model = Model { optimizer: Optimizer::Sgd, ..LLAMA_3 };
        let found = largest_batch(&model, bytes);
        let peak = |batch| Plan::new(&Model { batch, ..model }).peak_bytes;
        assert_eq!(found.peak_bytes, peak(found.batch.max(1)));
        assert!(found.batch == 0 || found.peak_bytes <= bytes);
        assert!(found.batch == MOST_BATCH || peak(found.batch + 1) > bytes, "{found:?}");
    }
}
