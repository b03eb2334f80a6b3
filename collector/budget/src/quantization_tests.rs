//! What quantised models take, against what others have published and stored.

use super::details::{DenseLayers, Details, Latent};
use super::method::{Optimizer, Precision};
use super::shape::{Biases, Experts, Mlp, Norm};
use super::{Block8, Lora, Matrix, Model, Part, Place, Plan, Quantization};

/// gpt-oss 20B, from its published `config.json`.
const GPT_OSS: Model = Model {
    kv_heads: 8,
    head_dim: Some(64),
    ffn: 2_880,
    mlp: Mlp::Gated,
    norm: Norm::Rms,
    biases: Biases::ALL,
    is_tied: false,
    experts: Some(Experts { count: 32, active: 4, shared: 0 }),
    details: Details { has_router_bias: true, has_sinks: true, ..Details::NONE },
    optimizer: Optimizer::Inference,
    ..Model::gpt(24, 2_880, 64, 201_088, 2_048, 1)
};
/// DeepSeek-V3 without its second prediction.
const DEEPSEEK: Model = Model {
    head_dim: Some(192),
    ffn: 2_048,
    mlp: Mlp::Gated,
    norm: Norm::Rms,
    biases: Biases::NONE,
    is_tied: false,
    experts: Some(Experts { count: 256, active: 8, shared: 1 }),
    details: Details {
        latent: Some(Latent { query: 1_536, key: 512, rope: 64, value: 128 }),
        dense: Some(DenseLayers { count: 3, ffn: 18_432 }),
        ..Details::NONE
    },
    optimizer: Optimizer::Inference,
    ..Model::gpt(61, 7_168, 128, 129_280, 2_048, 1)
};
const LLAMA_3: Model = Model {
    kv_heads: 8,
    ffn: 14_336,
    mlp: Mlp::Gated,
    norm: Norm::Rms,
    biases: Biases::NONE,
    is_tied: false,
    ..Model::gpt(32, 4_096, 32, 128_256, 2_048, 1)
};
const FP8: Quantization = Quantization::Fp8(Block8::USUAL);

#[test]
fn experts_and_blocks_are_counted_exactly() {
    let oss_120b = Model { layers: 36, experts: Some(Experts { count: 128, active: 4, shared: 0 }), ..GPT_OSS };
    let mixtral = Model { experts: Some(Experts { count: 8, active: 2, shared: 0 }), vocab: 32_000, ..LLAMA_3 };
    let mixtral = Model { optimizer: Optimizer::Inference, ..mixtral };
    let cases = [
        // 24 layers of 32 experts of 3 × 2880² weights, 17 bytes for each 32; 12.8 GiB (OpenAI 2025, gpt-oss model card, table 1).
        ("gpt-oss 20B", GPT_OSS, Quantization::Mxfp4, 19_110_297_600_u64, 13_761_264_768_u64),
        // 60.8 GiB, as the same table has it.
        ("gpt-oss 120B", oss_120b, Quantization::Mxfp4, 114_661_785_600, 65_248_815_744),
        // All but embedding, output layer, norms and routers. The keys' 576 rows take five blocks of 128.
        ("DeepSeek-V3", DEEPSEEK, FP8, 669_065_609_216, 673_150_552_416),
        // In 32 layers, attention of 2 × 4096² + 2 × 4096 × 1024, and eight experts of 3 × 4096 × 14336.
        ("mixtral", mixtral, FP8, 46_439_333_888, 46_977_589_248),
    ];
    for (name, model, quantization, quantized, bytes) in cases {
        let model = Model { quantization: Some(quantization), ..model };
        assert_eq!(model.check(), Ok(()), "{name}");
        let plan = Plan::new(&model);
        assert_eq!((plan.quantized, plan.bytes(Part::Weights)), (quantized, bytes), "{name}");
    }
}

#[test]
fn tensors_of_a_matrix() {
    let linear = |inputs, outputs| super::Linear::new(Place::Expert, inputs, outputs, false);
    let wide = Quantization::Fp8(Block8 { rows: 64, columns: 256 });
    let cases = [
        (Quantization::Mxfp4, linear(64, 10), [16 * 2 * 10, 2 * 10]),
        // The last block of a row may be partly empty.
        (Quantization::Mxfp4, linear(33, 10), [16 * 2 * 10, 2 * 10]),
        (FP8, linear(128, 128), [128 * 128, 4]),
        (FP8, linear(129, 576), [129 * 576, 4 * 2 * 5]),
        (wide, linear(512, 130), [512 * 130, 4 * 2 * 3]),
    ];
    for (quantization, linear, want) in cases {
        assert_eq!(quantization.tensors(linear), want, "{quantization:?} {linear:?}");
    }
    // Keys and values are matrices of their own, with blocks of their own.
    let model = Model { hidden: 128, heads: 2, kv_heads: 1, layers: 1, quantization: Some(FP8), ..LLAMA_3 };
    let (attention, _) = model.layer_linears();
    let scales: Vec<u64> = attention.into_iter().map(|linear| FP8.tensors(linear)[1]).collect();
    assert_eq!(scales, [4, 4, 4, 4]);
}

#[test]
fn formats_that_only_run_are_not_trained() {
    let lora = Some(Lora { rank: 8, targets: [Matrix::Query].into_iter().collect() });
    let trained = Model { optimizer: Optimizer::Adam, ..GPT_OSS };
    let prepared = Model { is_prepared: true, precision: Precision::Fp32, ..LLAMA_3 };
    let cases = [
        (
            Model { quantization: Some(Quantization::Mxfp4), lora, ..trained },
            "Transformers only runs weights in mxfp4, and trains no adapters of them",
        ),
        (
            Model { quantization: Some(FP8), ..LLAMA_3 },
            "Transformers only runs weights in fp8, and trains no adapters of them",
        ),
        (
            Model { quantization: Some(Quantization::Mxfp4), optimizer: Optimizer::Inference, ..LLAMA_3 },
            "mxfp4 stores the weights of experts in fewer bits, and the model has none",
        ),
        (prepared, "kbit-training prepares weights in int8 or nf4 for adapters"),
        (
            Model { lora, quantization: Some(Quantization::Nf4), precision: Precision::Bf16, ..prepared },
            "kbit-training prepares weights in int8 or nf4 for adapters",
        ),
    ];
    for (model, want) in cases {
        assert_eq!(model.check().map_err(|error| error.to_string()), Err(want.to_owned()));
    }
}

/// PEFT's `prepare_model_for_kbit_training` casts every parameter in 16 bits but those in 4 bits: embedding, output layer and norms.
#[test]
fn prepared_models_have_the_rest_in_32_bits() {
    let lora = Some(Lora { rank: 8, targets: [Matrix::Query, Matrix::Value].into_iter().collect() });
    // Two matrices of the vocabulary, and norms: two a layer, and the last one.
    let rest = 2 * 128_256 * 4_096 + 65 * 4_096;
    for quantization in [Quantization::Int8, Quantization::Nf4, Quantization::Nf4Double] {
        let plain = Model { lora, quantization: Some(quantization), ..LLAMA_3 };
        let weights = |model: &Model| Plan::new(model).bytes(Part::Weights);
        for precision in [Precision::Fp32, Precision::Autocast] {
            let prepared = Model { is_prepared: true, precision, ..plain };
            assert_eq!(prepared.check(), Ok(()));
            assert_eq!(weights(&prepared) - weights(&plain), 2 * rest, "{quantization:?} {precision:?}");
        }
    }
    // With autocast, bitsandbytes' matrices return the 32 bits of the norm's output: 6 bytes more for each number of a gated MLP.
    let autocast = Model { lora, quantization: Some(Quantization::Nf4), precision: Precision::Autocast, ..LLAMA_3 };
    let autocast = Model { implementation: super::Implementation::Transformers, ..autocast };
    let activations = |model: &Model| Plan::new(model).bytes(Part::Activations);
    let more = activations(&Model { is_prepared: true, ..autocast }) - activations(&autocast);
    assert_eq!(more, 32 * 2_048 * 6 * 14_336);
}
