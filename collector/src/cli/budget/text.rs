//! The plan as text for people.

use std::fmt::Write as _;

use budget::{Attention, Checkpointing, Implementation, Letter, Model, Optimizer, Part, Plan, Precision, Quantization};
use serde_json::Value;
use trace::units::{Bytes, Count, counted, distinguished};
use whatif::Card;

use super::config::Reach;
use super::fit::{EXACT_PERCENT, Fit};
use super::{FromFile, Printed};

/// Returns the plan as text for people: first the answer, and where it `explains`, the formulas with their sources.
pub(super) fn of(printed: &Printed, explains: bool) -> String {
    let mut out = String::new();
    let Printed { model, config, plan, fit } = printed;
    // Writing to a string can't fail.
    let _ = answer_text(&mut out, plan, fit.as_ref());
    let _ = warnings_text(&mut out, model, config.as_ref());
    if let Some(config) = config {
        let _ = writeln!(out, "model: {}", config.file);
    }
    if explains {
        if let Some(config) = config {
            let _ = config_text(&mut out, config);
        }
        let _ = shape_text(&mut out, model, plan);
        let _ = adapter_text(&mut out, plan);
        let _ = device_text(&mut out, model, plan);
        let _ = plan_text(&mut out, plan);
    } else {
        let _ = parts_text(&mut out, plan);
    }
    let _ = assumptions_text(&mut out, model, plan, config.as_ref());
    if let Some(fit) = fit {
        let _ = write!(out, "{fit}");
    }
    if !explains {
        let _ = writeln!(out, "formulas and their sources: add --explain");
    }
    out
}

/// Writes whether the model fits, or what it needs, and when it needs most.
fn answer_text(out: &mut String, plan: &Plan, fit: Option<&Fit>) -> std::fmt::Result {
    let peak = Bytes(plan.peak_bytes);
    let moment = plan.moments.iter().find(|moment| moment.bytes == plan.peak_bytes).map_or("", |moment| moment.name);
    match fit {
        Some(fit @ Fit { usable_bytes, is_close: true, .. }) => {
            let (needs, has) = distinguished(peak, Bytes(*usable_bytes));
            let place = fit.place();
            writeln!(
                out,
                "MAY FIT {place}: needs {needs} of {has}, and estimates are within {EXACT_PERCENT} % ({moment})"
            )
        }
        Some(fit @ Fit { usable_bytes, fits: true, .. }) => {
            let (usable, spare) = (Bytes(*usable_bytes), Bytes(usable_bytes.saturating_sub(plan.peak_bytes)));
            writeln!(out, "FITS {}: needs {peak} of {usable}, {spare} to spare ({moment})", fit.place())
        }
        Some(fit @ Fit { usable_bytes, .. }) => {
            let (needs, has) = distinguished(peak, Bytes(*usable_bytes));
            writeln!(out, "DOES NOT FIT {}: needs {needs}, but only {has} is available ({moment})", fit.place())
        }
        None => {
            let card =
                Card::smallest_for(plan.peak_bytes).map_or("no card in the list has that much", |card| card.name);
            writeln!(out, "NEEDS {peak} at its peak ({moment}): {card}")
        }
    }
}

/// Writes what is unusual about the options.
fn warnings_text(out: &mut String, model: &Model, config: Option<&FromFile>) -> std::fmt::Result {
    if let Some(reach) = config.and_then(|config| config.reach.as_ref()).filter(|reach| model.seq > reach.tokens) {
        let (seq, tokens) = (Count(model.seq), Count(reach.tokens));
        let scaling = match &reach.scaling {
            Some(scaling) => format!(" with its rope scaling ({scaling} of {} tokens)", Count(reach.unscaled)),
            None => " without rope scaling".to_owned(),
        };
        writeln!(
            out,
            "! --seq is {seq}, and the model reads {tokens} tokens{scaling}. Beyond them its text is poor, whatever fits."
        )?;
    }
    if model.positions > 0 && model.seq > model.positions {
        let (seq, positions) = (Count(model.seq), Count(model.positions));
        writeln!(out, "! --seq is {seq}, and the model has {positions} positions. Give --seq {}.", model.positions)?;
    }
    if model.attention == Attention::Plain && model.seq > LONG {
        writeln!(
            out,
            "! This attention keeps all scores, which grow with the square of --seq. With kernels in tiles: --attention flash"
        )?;
    }
    writeln!(out)
}

/// From this many tokens on, the scores of attention are worth a word.
const LONG: u64 = 4_096;

/// Writes what takes memory, without formulas.
fn parts_text(out: &mut String, plan: &Plan) -> std::fmt::Result {
    let names = plan.parts.iter().map(|part| part.part.name().len()).max().unwrap_or(0);
    let device = if plan.device.is_some() { ", on the device that needs most" } else { "" };
    writeln!(out, "at most, not all at once{device}:")?;
    for part in &plan.parts {
        writeln!(out, "  {:<names$} {:>10}", part.part.name(), Bytes(part.bytes).to_string())?;
    }
    writeln!(out)
}

/// Writes what the plan assumes, and what it leaves out.
fn assumptions_text(out: &mut String, model: &Model, plan: &Plan, config: Option<&FromFile>) -> std::fmt::Result {
    let rest = match (model.precision, model.is_prepared) {
        (Precision::Autocast, false) => "the rest in 32 bits with torch.autocast",
        (Precision::Autocast, true) => {
            "the rest in 32 bits as prepare_model_for_kbit_training leaves it, with torch.autocast"
        }
        (_, true) => "the rest and all results in 32 bits, as prepare_model_for_kbit_training leaves it",
        (Precision::Fp32, false) => "the rest in 32 bits",
        // Nothing tells that it will be called, and most guides call it.
        (_, false) if model.lora.is_some() => {
            "the rest in 16 bits, without prepare_model_for_kbit_training (--kbit-training)"
        }
        (_, false) => "the rest in 16 bits",
    };
    let quantized = model.quantization.map(|quantization| format!("{}, {rest}", quantization.described()));
    let precision = match model.precision {
        _ if quantized.is_some() => quantized.as_deref().unwrap_or_default(),
        Precision::Mixed if model.optimizer == Optimizer::Inference => "16 bits",
        Precision::Mixed if model.lora.is_some() => "frozen weights in 16 bits",
        Precision::Mixed => "16-bit weights with a 32-bit copy",
        Precision::Autocast => "32-bit weights with torch.autocast",
        Precision::Fp32 => "32 bits throughout",
        Precision::Bf16 => "16 bits throughout",
    };
    let optimizer = match model.optimizer {
        Optimizer::Adam => {
            let temporary = Bytes(plan.bytes(Part::OptimizerStep));
            &format!("Adam without fused=True, which takes {temporary} for a moment (--optimizer adam-fused does not)")
        }
        Optimizer::FusedAdam => "Adam with fused=True",
        Optimizer::Momentum => "SGD with momentum",
        Optimizer::Sgd => "SGD",
        Optimizer::Inference => "no training",
    };
    let attention = match model.attention {
        Attention::Flash => "attention in tiles",
        Attention::Plain => "attention with all scores",
    };
    let checkpointing = match model.checkpointing {
        Checkpointing::None => "no recomputation",
        Checkpointing::Every(_) => "recomputation",
    };
    let dropout = if model.dropout { "dropout" } else { "no dropout" };
    let modules = match model.implementation {
        Implementation::Transformers => "modules of Hugging Face's Transformers without torch.compile",
        Implementation::Fused => "fused modules",
    };
    let mut list = match model.optimizer {
        Optimizer::Inference => format!("{modules}, {precision}, {optimizer}, {attention}"),
        _ => format!("{modules}, {precision}, {optimizer}, {attention}, {checkpointing}, {dropout}"),
    };
    if let Some(Reach { unscaled, scaling: Some(scaling), .. }) = config.and_then(|config| config.reach.as_ref())
        && model.seq > *unscaled
    {
        write!(list, ", rope scaling ({scaling}) beyond {} tokens", Count(*unscaled))?;
    }
    writeln!(out, "assumes: {list}")?;
    writeln!(out, "left out: working memory of kernels, fragmentation")
}

/// Writes what came from a file.
fn config_text(out: &mut String, config: &FromFile) -> std::fmt::Result {
    let value = |value: &Value| match value {
        Value::String(word) => word.clone(),
        Value::Number(number) => number.as_u64().map_or_else(|| number.to_string(), |number| Count(number).to_string()),
        other => other.to_string(),
    };
    let list = |is_from_file: bool| {
        let chosen = config.taken.iter().filter(|taken| taken.key.is_some() == is_from_file);
        chosen.map(|taken| format!("{} {}", taken.option, value(&taken.value))).collect::<Vec<_>>().join(", ")
    };
    writeln!(out, "From {}: {}", config.file, list(true))?;
    writeln!(out, "As model type {} has it: {}", config.model_type, list(false))?;
    if !config.overridden.is_empty() {
        writeln!(out, "Overridden by options: {}", config.overridden.join(", "))?;
    }
    writeln!(out)
}

/// Writes the number of weights, with the formula of the shape and what its letters stand for.
fn shape_text(out: &mut String, model: &Model, plan: &Plan) -> std::fmt::Result {
    let shape = model.shape_params();
    match plan.params == shape {
        true => writeln!(out, "P = {} weights = {}", Count(shape), plan.params_formula)?,
        false => {
            writeln!(out, "P = {} weights, as given", Count(plan.params))?;
            writeln!(out, "The shape has {} = {}", Count(shape), plan.params_formula)?;
        }
    }
    if let Some(active) = plan.active_params {
        writeln!(out, "Active for each token: {}", Count(active))?;
    }
    letters(out, model, |_| true)?;
    writeln!(out, "  [{}]\n", plan.params_sources.join("; "))
}

/// Writes what the letters of formulas stand for.
fn letters(out: &mut String, model: &Model, is_meant: impl Fn(Letter) -> bool) -> std::fmt::Result {
    let is_explained = |letter: &Letter| match letter {
        Letter::KvHeads | Letter::HeadWidth => {
            model.kv_heads != model.heads || model.query_width() != model.hidden || model.kv_tokens > 0
        }
        letter => letter.number(model) > 0,
    };
    let letters: Vec<String> = Letter::ALL
        .into_iter()
        .filter(|letter| is_explained(letter) && is_meant(*letter))
        .map(|letter| format!("{} = {} {}", letter.symbol(), Count(letter.number(model)), letter.meaning()))
        .collect();
    for line in letters.chunks(4) {
        writeln!(out, "  {}", line.join(", "))?;
    }
    Ok(())
}

/// Writes what is trained instead of the weights.
fn adapter_text(out: &mut String, plan: &Plan) -> std::fmt::Result {
    let Some(adapters) = &plan.adapters else { return Ok(()) };
    let share = adapters.weights as f64 * 100.0 / plan.params.max(1) as f64;
    writeln!(
        out,
        "T = {} weights of adapters = {}, {share:.3} % of P; P is frozen\n",
        Count(adapters.weights),
        adapters.formula
    )
}

/// Writes how a model is divided, and the numbers of the device that needs most.
fn device_text(out: &mut String, model: &Model, plan: &Plan) -> std::fmt::Result {
    let parallel = model.parallel;
    if parallel.devices() > 1 || parallel.micro_batches > 1 {
        let all = [
            ("data-parallel", parallel.data),
            ("tensor-parallel", parallel.tensor),
            ("stages", parallel.pipeline),
            ("expert-parallel among the data-parallel", parallel.expert),
        ];
        let ways: Vec<String> = all
            .into_iter()
            .filter(|(_, number)| *number > 1)
            .map(|(name, number)| format!("{number} {name}"))
            .collect();
        let global = u128::from(model.batch) * u128::from(parallel.data) * u128::from(parallel.micro_batches);
        let ways = if ways.is_empty() { String::new() } else { format!(" ({})", ways.join(", ")) };
        let sequences = u64::try_from(global).unwrap_or(u64::MAX);
        writeln!(
            out,
            "{}{ways}; each step has {}",
            counted(parallel.devices(), "device"),
            counted(sequences, "sequence")
        )?;
    }
    if let Some(device) = &plan.device {
        let stage = match parallel.pipeline {
            1 => "Each device".to_owned(),
            stages if device.stage == 0 => format!("A device of the first of {stages} stages, which needs most,"),
            stages => format!("A device of the last of {stages} stages, which needs most,"),
        };
        writeln!(out, "{stage} has W = {} weights = {}, where", Count(device.weights), device.weights_formula)?;
        let is_changed = |letter: Letter| letter.number(&device.model) != letter.number(model);
        letters(out, &device.model, is_changed)?;
    }
    if plan.quantized > 0 {
        let matrices = match model.quantization {
            Some(Quantization::Mxfp4) => "experts",
            Some(Quantization::Fp8(_)) => "layers but routers",
            _ => "layers",
        };
        writeln!(out, "Q = {} quantised weights: the matrices of the {matrices}", Count(plan.quantized))?;
    }
    if parallel.devices() > 1 || plan.device.is_some() || plan.quantized > 0 {
        writeln!(out)?;
    }
    Ok(())
}

fn plan_text(out: &mut String, plan: &Plan) -> std::fmt::Result {
    let width = plan.parts.iter().map(|part| part.formula.chars().count()).max().unwrap_or(0);
    let names = plan.parts.iter().map(|part| part.part.name().len()).max().unwrap_or(0).max(16);
    for part in &plan.parts {
        let (name, bytes) = (part.part.name(), Bytes(part.bytes));
        writeln!(out, "  {name:<names$} {bytes:>10}  = {:<width$}  [{}]", part.formula, part.source)?;
    }
    writeln!(out, "\nMemory during a step, without working memory:")?;
    for moment in &plan.moments {
        let mark = if moment.bytes == plan.peak_bytes { "  <- peak" } else { "" };
        writeln!(out, "  {:<27} {:>10}{mark}", moment.name, Bytes(moment.bytes))?;
    }
    Ok(())
}
