//! Several models that serve requests from one device.

use std::collections::VecDeque;

use budget::{Model, Optimizer, Part, Precision};
use trace::units::{Count, PoolId, counted};

use crate::workloads::job::{Device, Job, JobError, Tensor, at};
use crate::workloads::params::{Choices, Param, Values, YES_NO};
use crate::workloads::sites;
use crate::workloads::transformer::Net;

pub(in crate::workloads) const PARAMS: &[Param] = &[
    Param { name: "models", default: "3", values: Values::Count(1, 16), help: "models on the device" },
    Param { name: "private-pools", default: "no", values: YES_NO, help: "whether each model has a memory pool" },
    Param { name: "requests", default: "24", values: Values::Count(1, 1_024), help: "concurrent requests per model" },
    Param { name: "longest", default: "4096", values: Values::Count(64, 131_072), help: "tokens in a long prompt" },
];

/// Number of tokens by which a cache grows each time.
const CACHE_STEP: u64 = 64;

/// A model that serves.
struct Server {
    model: Model,
    pool: Option<PoolId>,
    requests: VecDeque<Request>,
}

/// A request that is being answered.
struct Request {
    tokens: u64,
    left: u64,
    /// Keys and values of each layer.
    cache: Vec<Tensor>,
}

pub(in crate::workloads) fn run<D: Device>(
    job: &mut Job<D>,
    choices: &Choices,
    steps: u64,
    notes: &mut Vec<String>,
) -> Result<(), JobError> {
    let mut rejected = 0_u64;
    let mut served = 0_u64;
    let result = job.call(at("main", "serve.py", 120), |job| {
        let mut servers = Vec::new();
        for number in 0..choices.count("models") {
            servers.push(job.span(&format!("load model {number}"), |job| load(job, number, choices))?);
        }
        for step in 0..steps {
            let which = step as usize % servers.len().max(1);
            let Some(server) = servers.get_mut(which) else { return Ok(()) };
            let pool = server.pool;
            job.span(&format!("model {which}"), |job| {
                within(job, pool, |job| turn(job, server, choices, &mut served, &mut rejected))
            })?;
        }
        Ok(())
    });
    notes.push(format!("Answered {}; rejected {} for lack of memory.", counted(served, "request"), Count(rejected)));
    result
}

fn load<D: Device>(job: &mut Job<D>, number: u64, choices: &Choices) -> Result<Server, JobError> {
    // Each a little smaller than the one before, as a router's models are.
    let shape = Model::gpt(32 - 4 * (number % 4), 4_096 - 512 * (number % 3), 32 - 4 * (number % 3), 32_000, 2_048, 1);
    let model = Model { precision: Precision::Bf16, optimizer: Optimizer::Inference, ..shape };
    let pool = choices.is("private-pools").then(|| job.new_pool());
    // The model stays for as long as the program runs.
    let _net = within(job, pool, |job| Net::load(job, &model))?;
    Ok(Server { model, pool, requests: VecDeque::new() })
}

/// Runs `body` in a pool, if there is one.
fn within<D: Device, T>(
    job: &mut Job<D>,
    pool: Option<PoolId>,
    body: impl FnOnce(&mut Job<D>) -> Result<T, JobError>,
) -> Result<T, JobError> {
    match pool {
        Some(pool) => job.in_pool(pool, body),
        None => body(job),
    }
}

/// A model's turn: accepts new requests and continues all of them.
fn turn<D: Device>(
    job: &mut Job<D>,
    server: &mut Server,
    choices: &Choices,
    served: &mut u64,
    rejected: &mut u64,
) -> Result<(), JobError> {
    let longest = choices.count("longest");
    while (server.requests.len() as u64) < choices.count("requests") {
        // Most prompts are short, a few are long.
        let tokens = if job.random_below(6) == 0 {
            longest / 2 + job.random_below(longest / 2 + 1)
        } else {
            16 + job.random_below(longest / 8)
        };
        let left = 2 + job.random_below(12);
        match job.attempt(|job| job.call(at("prefill", "engine.py", 64), |job| prefill(job, &server.model, tokens))) {
            Ok(cache) => server.requests.push_back(Request { tokens, left, cache }),
            Err(JobError::OutOfMemory(_)) => {
                *rejected += 1;
                break;
            }
            Err(error) => return Err(error),
        }
    }
    for _ in 0..server.requests.len() {
        let Some(mut request) = server.requests.pop_front() else { break };
        if request.left == 0 {
            *served += 1;
            job.call(at("finish", "engine.py", 112), |job| job.free_all(request.cache));
            continue;
        }
        request.left -= 1;
        request.tokens += CACHE_STEP;
        match job.call(at("decode", "engine.py", 91), |job| extend_cache(job, &server.model, &mut request)) {
            Ok(()) => server.requests.push_back(request),
            Err(JobError::OutOfMemory(_)) => {
                *rejected += 1;
                job.call(at("evict", "engine.py", 103), |job| job.free_all(request.cache));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the bytes of the keys, or of the values, of one layer.
fn cache_bytes(model: &Model, tokens: u64) -> u64 {
    tokens * model.key_width() * model.precision.element()
}

/// Processes a prompt: allocates the cache of every layer, and the temporary tensors of the layers.
fn prefill<D: Device>(job: &mut Job<D>, model: &Model, tokens: u64) -> Result<Vec<Tensor>, JobError> {
    let stream = tokens * model.hidden * model.precision.element();
    let mut cache = Vec::new();
    for _ in 0..model.layers {
        let hidden = job.call(at("forward", "attention.py", 71), |job| job.alloc(3 * stream, sites::LINEAR_OP))?;
        for _ in 0..2 {
            let bytes = cache_bytes(model, tokens);
            let half = job.part(Part::KvCache, |job| {
                job.call(at("update", "cache.py", 52), |job| job.alloc(bytes, sites::CLONE_OP))
            })?;
            cache.push(half);
        }
        job.call(at("forward", "mlp.py", 41), |job| job.touch(4 * stream, sites::LINEAR_OP))?;
        job.free(hidden);
    }
    job.touch(model.vocab * model.precision.element(), sites::LINEAR_OP)?;
    Ok(cache)
}

/// Reallocates every cache a little longer, as `torch.cat([past, new])` does. If this fails, some caches are longer and
/// the rest are not; all still belong to the request.
fn extend_cache<D: Device>(job: &mut Job<D>, model: &Model, request: &mut Request) -> Result<(), JobError> {
    let bytes = cache_bytes(model, request.tokens);
    for old in &mut request.cache {
        let longer = job
            .part(Part::KvCache, |job| job.call(at("update", "cache.py", 58), |job| job.alloc(bytes, sites::CAT_OP)))?;
        job.free(std::mem::replace(old, longer));
    }
    let step = model.hidden * model.precision.element() * CACHE_STEP;
    job.call(at("forward", "mlp.py", 41), |job| job.touch(4 * step, sites::LINEAR_OP))
}
