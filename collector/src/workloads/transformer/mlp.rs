//! The second half of a layer: an MLP, or a router with experts.

use budget::{Experts, Linear, Matrix, Mlp, Model, Part};

use super::gradients::Gradients;
use super::linear::{adapt, gather_tokens, kept_if, linear_gradients, stream_bytes, working};
use crate::workloads::job::{Device, Job, JobError, Tensor, at};
use crate::workloads::sites;

/// The matrices that widen the residual stream: one, or both of a gated MLP.
const WIDENING: &[Matrix] = &[Matrix::Up, Matrix::Gate];

/// What an MLP or one expert keeps for its backward pass.
struct Saved {
    tokens: u64,
    /// The results of the widening matrices.
    wide: Vec<Tensor>,
    /// The result of the activation function, if something needs it.
    activation: Option<Tensor>,
    /// The product of a gated MLP, which is the input of its last matrix.
    product: Option<Tensor>,
    /// What the adapters keep between their matrices.
    adapters: Vec<Tensor>,
}

/// What an expert among which the router chooses keeps in addition: its tokens, and its result.
struct Routed {
    tokens: Option<Tensor>,
    expert: Saved,
    result: Tensor,
}

/// What the second half of a layer keeps.
pub(super) struct SavedMlp {
    /// The router's probabilities, and the weights and indices of the active experts.
    router: Vec<Tensor>,
    routed: Vec<Routed>,
    /// The only MLP, or the shared experts.
    whole: Vec<Saved>,
}

impl Saved {
    fn tensors(self) -> impl Iterator<Item = Tensor> {
        self.wide.into_iter().chain(self.activation).chain(self.product).chain(self.adapters)
    }
}

impl SavedMlp {
    /// Returns all tensors.
    pub(super) fn tensors(self) -> impl Iterator<Item = Tensor> {
        let routed = self.routed.into_iter().flat_map(|routed| {
            let Routed { tokens, expert, result } = routed;
            tokens.into_iter().chain([result]).chain(expert.tensors())
        });
        self.router.into_iter().chain(routed).chain(self.whole.into_iter().flat_map(Saved::tensors))
    }
}

/// Runs the forward pass. Returns what is kept, and the result, which is not.
pub(super) fn forward<D: Device>(job: &mut Job<D>, model: &Model) -> Result<(SavedMlp, Tensor), JobError> {
    let tokens = model.batch * model.seq;
    let Some(experts) = model.experts else {
        let (saved, result) = forward_one(job, model, tokens)?;
        return Ok((SavedMlp { router: Vec::new(), routed: Vec::new(), whole: vec![saved] }, result));
    };
    let (element, stream) = (model.precision.element(), stream_bytes(model));
    let router = job.call(at("forward", "moe.py", 88), |job| {
        let logits = working(job, tokens * model.routed_experts() * element, sites::LINEAR_OP)?;
        let probabilities = job.alloc(tokens * model.routed_experts() * 4, sites::SOFTMAX_OP)?;
        job.free(logits);
        let weights = job.alloc(tokens * experts.active * 4, sites::TOPK_OP)?;
        let indices = job.alloc(tokens * experts.active * 8, sites::TOPK_OP)?;
        Ok::<_, JobError>(vec![probabilities, weights, indices])
    })?;
    let sum = job.call(at("forward", "moe.py", 94), |job| working(job, stream, sites::ZEROS_OP))?;
    let mut routed = Vec::new();
    for share in shares(tokens, experts) {
        let bytes = share * model.hidden * element;
        let is_kept = model.keeps_input_of(WIDENING);
        let gathered = job.call(at("forward", "moe.py", 101), |job| kept_if(job, is_kept, bytes, sites::GATHER_OP))?;
        let (expert, unkept) = forward_one(job, model, share)?;
        let tokens = is_kept.then_some(gathered);
        if !is_kept {
            job.free(gathered);
        }
        // The result is kept, as it is multiplied by the router's weight.
        let result = job.alloc(bytes, sites::MUL_OP)?;
        job.free(unkept);
        job.call(at("forward", "moe.py", 103), |job| job.part(Part::Working, |job| job.touch(bytes, sites::MUL_OP)))?;
        routed.push(Routed { tokens, expert, result });
    }
    let mut whole = Vec::new();
    for _ in 0..experts.shared {
        let (saved, result) = forward_one(job, model, tokens)?;
        job.free(result);
        whole.push(saved);
    }
    Ok((SavedMlp { router, routed, whole }, sum))
}

/// Returns how many tokens each expert processes. The router spreads them evenly; all sums of memory are the same if it does
/// not.
fn shares(tokens: u64, experts: Experts) -> impl Iterator<Item = u64> {
    let (all, count) = (tokens * experts.active, experts.count.max(1));
    (0..experts.count).map(move |number| all / count + u64::from(number < all % count)).filter(|share| *share > 0)
}

/// Runs one MLP forward.
fn forward_one<D: Device>(job: &mut Job<D>, model: &Model, tokens: u64) -> Result<(Saved, Tensor), JobError> {
    let element = model.precision.element();
    let bytes = tokens * model.ffn * element;
    let (mut wide, mut adapters) = (Vec::new(), Vec::new());
    gather_tokens(job, model)?;
    for matrix in WIDENING.iter().take(model.mlp.widening() as usize) {
        wide.push(job.call(at("forward", "mlp.py", 41), |job| job.alloc(bytes, sites::LINEAR_OP))?);
        adapt(job, model, tokens, &[*matrix], &mut adapters)?;
    }
    let (function, product) = match model.mlp {
        Mlp::Plain => (sites::GELU_OP, None),
        Mlp::Gated => (sites::SILU_OP, Some(sites::MUL_OP)),
    };
    // The last of them is the input of the narrowing matrix.
    let keeps_last = model.keeps_input_of(&[Matrix::Down]);
    let is_kept = keeps_last || product.is_some();
    let activation = job.call(at("forward", "mlp.py", 42), |job| kept_if(job, is_kept, bytes, function))?;
    let product = match product {
        Some(site) => Some(job.call(at("forward", "mlp.py", 42), |job| kept_if(job, keeps_last, bytes, site))?),
        None => None,
    };
    let narrow =
        if model.experts.is_some() { tokens * model.hidden } else { tokens * model.residual_width() } * element;
    let result = job.call(at("forward", "mlp.py", 43), |job| working(job, narrow, sites::LINEAR_OP))?;
    adapt(job, model, tokens, &[Matrix::Down], &mut adapters)?;
    let (activation, product) = match (keeps_last, product) {
        (true, product) => (Some(activation), product),
        (false, Some(product)) => {
            job.free(product);
            (Some(activation), None)
        }
        (false, None) => {
            job.free(activation);
            (None, None)
        }
    };
    Ok((Saved { tokens, wide, activation, product, adapters }, result))
}

/// Returns whether the backward pass of the second half needs the norm's output.
pub(super) fn keeps_norm(model: &Model) -> bool {
    // A router reads it too, and keeps it if it is trained. Shared experts read it like a single MLP.
    let is_read = model.experts.is_none_or(|experts| experts.shared > 0 || model.lora.is_none());
    is_read && model.keeps_input_of(WIDENING)
}

/// Runs the backward pass, which frees what was kept. The caller holds the gradient of the result. Returns the gradient of
/// the input.
pub(super) fn backward<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    saved: SavedMlp,
    gradients: &mut Gradients,
) -> Result<Tensor, JobError> {
    let SavedMlp { router, routed, mut whole } = saved;
    let Some(experts) = model.experts else {
        return match whole.pop() {
            Some(saved) => backward_one(job, model, saved, gradients),
            None => job.alloc(stream_bytes(model), sites::INPUT_GRADIENT),
        };
    };
    let (element, stream) = (model.precision.element(), stream_bytes(model));
    let sum = job.alloc(stream, sites::INPUT_GRADIENT)?;
    while let Some(saved) = whole.pop() {
        let gradient = backward_one(job, model, saved, gradients)?;
        job.free(gradient);
    }
    gradients.is_expert = true;
    for Routed { tokens, expert, result } in routed.into_iter().rev() {
        let bytes = expert.tokens * model.hidden * element;
        let weighted = job.alloc(bytes, sites::GATHER_BACKWARD)?;
        let flowing = job.alloc(bytes, sites::MUL_BACKWARD)?;
        job.free_all([weighted, result]);
        let gradient = backward_one(job, model, expert, gradients)?;
        job.free_all(tokens.into_iter().chain([flowing]));
        // Spread over all tokens, and added to the other experts' gradients.
        job.touch(stream, sites::GATHER_BACKWARD)?;
        job.free(gradient);
    }
    // An expert without tokens has no gradient, unless zeros are made for it.
    let idle = experts.count - shares(model.batch * model.seq, experts).count() as u64;
    for _ in 0..idle {
        for matrix in WIDENING.iter().take(model.mlp.widening() as usize) {
            linear_gradients(job, model, (model.widening(), &[*matrix]), gradients)?;
        }
        linear_gradients(job, model, (model.narrowing(), &[Matrix::Down]), gradients)?;
    }
    gradients.is_expert = false;
    let logits = job.alloc(model.batch * model.seq * model.routed_experts() * 4, sites::SOFTMAX_BACKWARD)?;
    job.free_all(router);
    job.touch(stream, sites::INPUT_GRADIENT)?;
    if let Some(linear) = model.router() {
        linear_gradients(job, model, (linear, &[]), gradients)?;
    }
    job.free(logits);
    Ok(sum)
}

/// Runs one MLP backward.
fn backward_one<D: Device>(
    job: &mut Job<D>,
    model: &Model,
    saved: Saved,
    gradients: &mut Gradients,
) -> Result<Tensor, JobError> {
    let element = model.precision.element();
    let Saved { tokens, mut wide, activation, product, adapters } = saved;
    let bytes = tokens * model.ffn * element;
    let widening: Linear = model.widening();

    let mut gradient = job.alloc(bytes, sites::INPUT_GRADIENT)?;
    linear_gradients(job, model, (model.narrowing(), &[Matrix::Down]), gradients)?;
    let mut other = None;
    if model.mlp == Mlp::Gated {
        // The product's gradient becomes that of the activation and that of the other matrix's result.
        job.free_all(product);
        let of_activation = job.alloc(bytes, sites::MUL_BACKWARD)?;
        other = Some(job.alloc(bytes, sites::MUL_BACKWARD)?);
        job.free(gradient);
        job.free_all(wide.pop());
        gradient = of_activation;
    }
    job.free_all(activation);
    let site = if model.mlp == Mlp::Gated { sites::SILU_BACKWARD } else { sites::GELU_BACKWARD };
    let inner = job.alloc(bytes, site)?;
    job.free(gradient);
    job.free_all(wide);
    let numbers = if model.experts.is_some() { tokens * model.hidden } else { tokens * model.residual_width() };
    let narrow = job.alloc(numbers * element, sites::INPUT_GRADIENT)?;
    linear_gradients(job, model, (widening, &[Matrix::Up]), gradients)?;
    job.free(inner);
    if let Some(other) = other {
        // The input's gradient by way of the other matrix is added to the first.
        job.touch(numbers * element, sites::INPUT_GRADIENT)?;
        linear_gradients(job, model, (widening, &[Matrix::Gate]), gradients)?;
        job.free(other);
    }
    job.free_all(adapters);
    Ok(narrow)
}
