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
        Callee::Sequential => vec![
            "from torch.utils.checkpoint import checkpoint_sequential".to_owned(),
            format!("# {place}: `modules` is the nn.Sequential that is called there, `x` what it is called with."),
            format!("x = checkpoint_sequential(modules, {calls}, x, use_reentrant=False)"),
        ],
        Callee::Module | Callee::Function(_) => {
            let called = called(&scope.callee);
            let call = format!("x = checkpoint({called}, x, use_reentrant=False)");
            let mut out = lines(&["from torch.utils.checkpoint import checkpoint"]);
            out.push(format!("# {place}: in place of x = {called}(x)"));
            if is_part {
                out.push(format!("{call} if number < {calls} else {called}(x)  # number: of the layer, from 0"));
            } else {
                out.push(call);
            }
            out
        }
    }
}

/// Returns the lines that offload what the first calls of a line keep.
pub(crate) fn offload(scope: &Scope, calls: u32) -> Vec<String> {
    let (place, called) = (&scope.place, called(&scope.callee));
    let mut out = vec![format!("# {place}: around x = {called}(x)")];
    if calls < scope.calls() {
        out.insert(0, "from contextlib import nullcontext".to_owned());
        out.push(format!(
            "with torch.autograd.graph.save_on_cpu(pin_memory=True) if number < {calls} else nullcontext():  # number: of the layer, \
             from 0"
        ));
    } else {
        out.push("with torch.autograd.graph.save_on_cpu(pin_memory=True):".to_owned());
    }
    out.push(format!("    x = {called}(x)"));
    out
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
    match &late.line {
        None => lines(&["optimizer.step()", "optimizer.zero_grad(set_to_none=True)  # here, not in the next step"]),
        Some(_) => {
            vec![format!("del outputs  # at the end of the step: whatever variable names what {} makes", late.place)]
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
