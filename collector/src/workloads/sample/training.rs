//! The training script of the sample run as far as memory is concerned: which tensors it makes, how large, and when
//! they are freed.

use super::sites;
use crate::workloads::job::{Device, Job, JobError, Site, Tensor};
use trace::units::Stream;

const LAYERS: usize = 8;
const WIDTH: u64 = 2560;
const HEADS: u64 = 20;
const VOCABULARY: u64 = 50_304;
const BATCH: u64 = 8;
/// Bytes of a number in bfloat16 and in float32.
const HALF: u64 = 2;
const FLOAT: u64 = 4;
/// Number of batches whose gradients are summed before the weights are updated.
const ACCUMULATE: usize = 4;
/// Number of batches of equal length; later ones vary. The run fails before the last ones.
const STEADY: usize = 28;
pub(in crate::workloads) const STEPS: u64 = 200;
const STEADY_LENGTH: u64 = 1024;
/// Number of batches between evaluations.
const EVALUATE_EVERY: usize = 8;
/// Number of pieces of text that an evaluation generates.
const GENERATED_PIECES: u64 = 10;

/// The sizes of a layer's parameters in bytes: the two norms, then the four matrices with their biases.
const LAYER_PARAMETERS: [u64; 12] = [
    WIDTH * HALF,
    WIDTH * HALF,
    3 * WIDTH * WIDTH * HALF,
    3 * WIDTH * HALF,
    WIDTH * WIDTH * HALF,
    WIDTH * HALF,
    WIDTH * HALF,
    WIDTH * HALF,
    4 * WIDTH * WIDTH * HALF,
    4 * WIDTH * HALF,
    4 * WIDTH * WIDTH * HALF,
    WIDTH * HALF,
];
const EMBEDDING: u64 = VOCABULARY * WIDTH * HALF;

/// The tensors of a batch: tokens, targets and mask, allocated on the copying stream.
#[derive(Clone, Copy)]
struct Batch {
    length: u64,
    tensors: [Tensor; 3],
}

/// What one layer keeps for its backward pass.
struct SavedLayer {
    norm_1: [Tensor; 2],
    qkv: Tensor,
    attention: [Tensor; 2],
    residual_1: Tensor,
    norm_2: [Tensor; 2],
    up: Tensor,
    activation: Tensor,
    residual_2: Tensor,
}

/// What the whole forward pass keeps.
struct Saved {
    embedding: Tensor,
    layers: Vec<SavedLayer>,
    norm: Tensor,
    logits: Tensor,
    log_probabilities: Tensor,
    loss: Tensor,
}

/// Runs the script until a request fails.
pub(in crate::workloads) fn train<D: Device>(run: &mut Job<D>, steps: u64) -> Result<(), JobError> {
    let copying = run.new_stream()?;
    run.span("setup", set_up)?;
    let mut gradients: Vec<Tensor> = Vec::new();
    let mut has_momentum = false;
    let mut batch = prefetch(run, copying, STEADY_LENGTH)?;
    for step in 0..steps as usize {
        let name = format!("step {step}");
        batch = run.span(&name, |run| train_step(run, copying, step, batch, &mut gradients))?;
        if (step + 1) % ACCUMULATE == 0 {
            run.span("optimizer", |run| update(run, &mut gradients, &mut has_momentum))?;
        }
        if (step + 1) % EVALUATE_EVERY == 0 {
            run.span("evaluate", evaluate)?;
        }
    }
    Ok(())
}

/// Moves the parameters to the device and records the sampler's CUDA graph.
fn set_up<D: Device>(run: &mut Job<D>) -> Result<(), JobError> {
    for bytes in parameters() {
        let _parameter = run.alloc(bytes, sites::PARAMETER)?;
        run.wait((bytes / 12_000) as i64);
    }
    run.wait(400_000);
    run.capture(|run| {
        for _ in 0..6 {
            let warmup = run.alloc(BATCH * 64 * WIDTH * FLOAT, sites::GRAPH_WARMUP)?;
            let _static_output = run.alloc(BATCH * 256 * WIDTH * HALF, sites::GRAPH_STATIC)?;
            run.free_at(warmup, sites::DROPPED);
        }
        Ok(())
    })?;
    run.wait(900_000);
    Ok(())
}

/// Returns the sizes of all parameters in bytes.
fn parameters() -> impl Iterator<Item = u64> {
    std::iter::once(EMBEDDING).chain((0..LAYERS).flat_map(|_| LAYER_PARAMETERS))
}

/// Copies the next batch while the model computes.
fn prefetch<D: Device>(run: &mut Job<D>, copying: Stream, length: u64) -> Result<Batch, JobError> {
    let tokens = BATCH * length * 8;
    Ok(Batch {
        length,
        tensors: [
            run.alloc_on(copying, tokens, sites::TOKENS)?,
            run.alloc_on(copying, tokens, sites::TOKENS)?,
            run.alloc_on(copying, BATCH * length * length * HALF, sites::MASK)?,
        ],
    })
}

/// Trains one batch, forward and backward; returns the next one.
fn train_step<D: Device>(
    run: &mut Job<D>,
    copying: Stream,
    step: usize,
    batch: Batch,
    gradients: &mut Vec<Tensor>,
) -> Result<Batch, JobError> {
    let next = if step + 1 < STEADY { STEADY_LENGTH } else { 512 + 8 * run.random_below(113) };
    let next = prefetch(run, copying, next)?;
    let Batch { length, tensors } = batch;
    let saved = run.span("forward", |run| forward(run, length));
    // Even if the forward pass failed: the batch is freed with the function's frame.
    for tensor in tensors {
        run.record_stream(tensor, run.main_stream())?;
        run.free_at(tensor, sites::DROPPED);
    }
    let saved = saved?;
    run.span("backward", |run| run.in_engine(|run| backward(run, length, saved, gradients)))?;
    // The loss is printed, so the program waits for the device.
    let printing = 3_000 + run.random_below(2_000) as i64;
    run.wait(printing);
    Ok(next)
}

fn forward<D: Device>(run: &mut Job<D>, length: u64) -> Result<Saved, JobError> {
    let hidden = BATCH * length * WIDTH * HALF;
    let statistics = 2 * BATCH * length * FLOAT;
    let tokens = run.alloc(hidden, sites::TOKEN_EMBEDDING)?;
    let embedding = run.alloc(hidden, sites::POSITION_ADD)?;
    run.free_at(tokens, sites::DROPPED);

    let mut layers = Vec::with_capacity(LAYERS);
    for _ in 0..LAYERS {
        let norm_1 = [run.alloc(hidden, sites::NORM_1)?, run.alloc(statistics, sites::NORM_1)?];
        let qkv = run.alloc(3 * hidden, sites::QKV)?;
        let attention =
            [run.alloc(hidden, sites::ATTENTION)?, run.alloc(BATCH * HEADS * length * FLOAT, sites::ATTENTION)?];
        let projection = run.alloc(hidden, sites::PROJECTION)?;
        let residual_1 = run.alloc(hidden, sites::RESIDUAL_1)?;
        run.free_at(projection, sites::DROPPED);
        let norm_2 = [run.alloc(hidden, sites::NORM_2)?, run.alloc(statistics, sites::NORM_2)?];
        let up = run.alloc(4 * hidden, sites::UP)?;
        let activation = run.alloc(4 * hidden, sites::ACTIVATION)?;
        let down = run.alloc(hidden, sites::DOWN)?;
        let residual_2 = run.alloc(hidden, sites::RESIDUAL_2)?;
        run.free_at(down, sites::DROPPED);
        layers.push(SavedLayer { norm_1, qkv, attention, residual_1, norm_2, up, activation, residual_2 });
    }

    let norm = run.alloc(hidden, sites::FINAL_NORM)?;
    let logits = run.alloc(BATCH * length * VOCABULARY * HALF, sites::LOGITS)?;
    let float = run.alloc(BATCH * length * VOCABULARY * FLOAT, sites::LOGITS_FLOAT)?;
    let log_probabilities = run.alloc(BATCH * length * VOCABULARY * FLOAT, sites::LOG_PROBABILITIES)?;
    run.free_at(float, sites::DROPPED);
    let loss = run.alloc(FLOAT, sites::LOSS_VALUE)?;
    Ok(Saved { embedding, layers, norm, logits, log_probabilities, loss })
}

fn backward<D: Device>(
    run: &mut Job<D>,
    length: u64,
    saved: Saved,
    gradients: &mut Vec<Tensor>,
) -> Result<(), JobError> {
    let hidden = BATCH * length * WIDTH * HALF;
    // If gradients exist, the new ones are added to them and freed.
    let first = gradients.is_empty();
    let mut gradient = |run: &mut Job<D>, bytes: u64, site: Site| -> Result<(), JobError> {
        let made = run.alloc(bytes, site)?;
        if first {
            gradients.push(made);
        } else {
            run.free(made);
        }
        Ok(())
    };

    let float = run.alloc(BATCH * length * VOCABULARY * FLOAT, sites::LOSS_BACKWARD)?;
    run.free(saved.log_probabilities);
    let half = run.alloc(BATCH * length * VOCABULARY * HALF, sites::CAST_BACKWARD)?;
    run.free(float);
    run.free(saved.logits);
    let mut flowing = run.alloc(hidden, sites::INPUT_GRADIENT)?;
    gradient(run, EMBEDDING, sites::WEIGHT_GRADIENT)?;
    run.free(half);
    run.free(saved.norm);

    for layer in saved.layers.into_iter().rev() {
        let [norm_1, qkv_matrix, out_matrix, norm_2, up_matrix, down_matrix] = [0, 2, 4, 6, 8, 10];
        run.free(layer.residual_2);
        let wide = run.alloc(4 * hidden, sites::INPUT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[down_matrix], sites::WEIGHT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[down_matrix + 1], sites::BIAS_GRADIENT)?;
        run.free(layer.activation);
        let gelu = run.alloc(4 * hidden, sites::GELU_BACKWARD)?;
        run.free(wide);
        run.free(layer.up);
        let narrow = run.alloc(hidden, sites::INPUT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[up_matrix], sites::WEIGHT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[up_matrix + 1], sites::BIAS_GRADIENT)?;
        run.free(gelu);
        let below = run.alloc(hidden, sites::NORM_BACKWARD)?;
        gradient(run, 2 * LAYER_PARAMETERS[norm_2], sites::NORM_BACKWARD)?;
        for tensor in layer.norm_2.into_iter().chain([narrow, flowing, layer.residual_1]) {
            run.free(tensor);
        }

        let attended = run.alloc(hidden, sites::INPUT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[out_matrix], sites::WEIGHT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[out_matrix + 1], sites::BIAS_GRADIENT)?;
        let qkv = run.alloc(3 * hidden, sites::ATTENTION_BACKWARD)?;
        for tensor in layer.attention.into_iter().chain([attended, layer.qkv]) {
            run.free(tensor);
        }
        let narrow = run.alloc(hidden, sites::INPUT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[qkv_matrix], sites::WEIGHT_GRADIENT)?;
        gradient(run, LAYER_PARAMETERS[qkv_matrix + 1], sites::BIAS_GRADIENT)?;
        run.free(qkv);
        flowing = run.alloc(hidden, sites::NORM_BACKWARD)?;
        gradient(run, 2 * LAYER_PARAMETERS[norm_1], sites::NORM_BACKWARD)?;
        for tensor in layer.norm_1.into_iter().chain([narrow, below]) {
            run.free(tensor);
        }
    }

    let dense = run.alloc(EMBEDDING, sites::EMBEDDING_BACKWARD)?;
    run.free(flowing);
    run.free(saved.embedding);
    run.free(dense);
    run.free_at(saved.loss, sites::DROPPED);
    Ok(())
}

/// Runs a step of AdamW: the first one allocates its state, each allocates and frees a square root of it.
fn update<D: Device>(run: &mut Job<D>, gradients: &mut Vec<Tensor>, has_momentum: &mut bool) -> Result<(), JobError> {
    let norms = run.alloc(4 * 512, sites::GRADIENT_NORM)?;
    run.free_at(norms, sites::DROPPED);
    if !*has_momentum {
        for bytes in parameters() {
            let _first = run.alloc(bytes, sites::MOMENTUM)?;
            let _second = run.alloc(bytes, sites::MOMENTUM)?;
        }
        *has_momentum = true;
    }
    let mut roots = Vec::new();
    for bytes in parameters() {
        roots.push(run.alloc(bytes, sites::DENOMINATOR)?);
    }
    run.wait(31_000);
    for tensor in roots.into_iter().chain(gradients.drain(..)) {
        run.free_at(tensor, sites::DROPPED);
    }
    Ok(())
}

/// Generates text with a growing key and value cache, and keeps the scores of each piece on the device.
fn evaluate<D: Device>(run: &mut Job<D>) -> Result<(), JobError> {
    let mut length = 160 + 8 * run.random_below(40);
    let mut cache: Vec<Tensor> = Vec::new();
    for _ in 0..GENERATED_PIECES {
        // Each piece reallocates every layer's keys and values, a little longer.
        let mut longer = Vec::with_capacity(2 * LAYERS);
        let mut old = cache.into_iter();
        for _ in 0..LAYERS {
            for _ in 0..2 {
                longer.push(run.alloc(BATCH * length * WIDTH * HALF, sites::CACHE)?);
                if let Some(tensor) = old.next() {
                    run.free_at(tensor, sites::DROPPED);
                }
            }
            let hidden = run.alloc(BATCH * length * 4 * WIDTH * HALF, sites::EVALUATION_HIDDEN)?;
            run.free_at(hidden, sites::DROPPED);
        }
        cache = longer;
        let logits = run.alloc(BATCH * 32 * VOCABULARY * HALF, sites::EVALUATION_LOGITS)?;
        // `scores.append(logits.float())`: the line that makes the run fail.
        let _kept = run.alloc(BATCH * 32 * VOCABULARY * FLOAT, sites::KEPT_SCORES)?;
        run.free_at(logits, sites::DROPPED);
        run.wait(24_000);
        length += 24 + 8 * run.random_below(9);
    }
    for tensor in cache {
        run.free_at(tensor, sites::DROPPED);
    }
    Ok(())
}
