//! Lines of Python that do what a plan says.

use crate::earlier::Late;
use crate::scope::{Callee, Scope};

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// Returns the lines that checkpoint the first calls of a line.
pub(crate) fn checkpoint(scope: &Scope, calls: u32) -> Vec<String> {
    let (place, most) = (&scope.place, scope.calls());
    let is_part = calls < most;
    match &scope.callee {
        Callee::Transformers => {
            let mut out = Vec::new();
            if is_part {
                out.push(format!("# This does all {most} layers; the plan needs the first {calls}."));
            }
            out.push(
                "model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": False})"
                    .to_owned(),
            );
            out
        }
        Callee::Class(class) => {
            let mut out = lines(&[
                "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing",
            ]);
            out.push(format!("# {class}, as {place} calls it."));
            if is_part {
                out.push(format!("first = [m for m in model.modules() if isinstance(m, {class})][:{calls}]"));
                out.push(
                    "apply_activation_checkpointing(model, check_fn=lambda m: any(m is layer for layer in first))"
                        .to_owned(),
                );
            } else {
                out.push(format!("apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, {class}))"));
            }
            out
        }
        Callee::Sequential | Callee::Module | Callee::Function(_) => {
            let called = called(&scope.callee);
            let mut call = format!("x = checkpoint({called}, x, use_reentrant=False)");
            if is_part {
                call += &format!(" if number < {calls} else {called}(x)  # number: of the layer, from 0");
            }
            let mut out = lines(&["from torch.utils.checkpoint import checkpoint"]);
            out.extend(match scope.callee {
                Callee::Sequential if most > 1 => one_by_one(place, &[call]),
                _ => vec![format!("# {place}: in place of x = {called}(x)"), call],
            });
            out
        }
    }
}

/// Returns the lines that offload what the first calls of a line keep.
pub(crate) fn offload(scope: &Scope, calls: u32) -> Vec<String> {
    let (place, called) = (&scope.place, called(&scope.callee));
    let (around, call) = (format!("# {place}: around x = {called}(x)"), format!("    x = {called}(x)"));
    let with = "with torch.autograd.graph.save_on_cpu(pin_memory=True)";
    if calls >= scope.calls() {
        return vec![around, format!("{with}:"), call];
    }
    let with = format!("{with} if number < {calls} else nullcontext():  # number: of the layer, from 0");
    let mut out = lines(&["from contextlib import nullcontext"]);
    out.extend(match scope.callee {
        Callee::Sequential => one_by_one(place, &[with, call]),
        _ => vec![around, with, call],
    });
    out
}

/// Returns lines that call the modules of an `nn.Sequential` one by one, each as `body` does.
fn one_by_one(place: &str, body: &[String]) -> Vec<String> {
    let head = [
        format!("# {place}: in place of x = layers(x), which is an nn.Sequential"),
        "for number, layer in enumerate(layers):".to_owned(),
    ];
    head.into_iter().chain(body.iter().map(|line| format!("    {line}"))).collect()
}

/// Returns the lines that move the optimizer's state.
pub(crate) fn offload_optimizer() -> Vec<String> {
    lines(&[
        "def move_state(optimizer, device):",
        "    for state in optimizer.state.values():",
        "        for name, value in state.items():",
        "            if torch.is_tensor(value) and value.dim() > 0:",
        "                place = torch.empty_like(value, device=device, pin_memory=device == \"cpu\")",
        "                state[name] = place.copy_(value)",
        "",
        "move_state(optimizer, \"cuda\")",
        "optimizer.step()",
        "move_state(optimizer, \"cpu\")",
    ])
}

/// Returns the lines that free something at the end of its step.
pub(crate) fn free_earlier(late: &Late) -> Vec<String> {
    match &late.place {
        None => lines(&["optimizer.step()", "optimizer.zero_grad(set_to_none=True)  # here, not in the next step"]),
        Some(place) => {
            vec![format!("del outputs  # at the end of the step: whatever variable names what {place} makes")]
        }
    }
}

/// Returns the name by which lines call it.
fn called(callee: &Callee) -> &str {
    match callee {
        Callee::Function(name) => name,
        _ => "layer",
    }
}
